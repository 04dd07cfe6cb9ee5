// Roundhouse on Azure: one resource group with the apps of one or both profiles, each with its own identity, storage account and
// vault. The template declares plain resources and uses no published modules, so that the repository contains all of it for review
// and checks.
targetScope = 'subscription'

@description('The name of the environment; every other name follows from it.')
@minLength(1)
@maxLength(40)
param environmentName string

@description('The region of everything.')
@metadata({ azd: { type: 'location' } })
param location string

@description('The resource group, which is made; empty: rg- and the name of the environment.')
param resourceGroupName string = ''

@description('Whether there is an app of the context publisher.')
param publisher bool = true

@description('Whether there is an app of the context managed-app.')
param managedApp bool = false

@description('What the apps run on.')
@allowed(['flex', 'premium', 'container-apps'])
param plan string = 'flex'

@description('The most instances of each app.')
@minValue(1)
@maxValue(1000)
param maximumInstances int = 40

@description('Whether storage and vaults are reached through private endpoints alone.')
param isolated bool = false

@description('The client id of the application that people sign in with; empty: nobody signs in, and function keys open the API.')
param signInClientId string = ''

@description('Whether requests without a token are refused before they reach the app, but for the paths of keys, intakes and probes.')
param signInRequired bool = false

@description('The tenant of that application, whose people see what belongs to all tenants; empty: that of the subscription.')
param signInTenant string = ''

@description('ROUNDHOUSE_OUTBOX: where events go; empty: to the log.')
param outbox object = {}

@description('ROUNDHOUSE_UPDATE_ENDPOINT: where the managed application is managed. Its app does not start without.')
param updateEndpoint string = ''

@description('ROUNDHOUSE_INSTANCE_ID: the managed instance that the managed application belongs to; it adds itself to its registry under this id.')
param instanceId string = ''

@description('ROUNDHOUSE_TENANT_ID: whose that instance is.')
param instanceTenant string = ''

@description('The name of the key that payloads are encrypted with, which is made in the vault; empty: they are not encrypted.')
param payloadKey string = ''

@description('More settings of the app of the publisher: those of docs/settings.md that this template does not set.')
param publisherSettings object = {}

@description('More settings of the app of the managed application.')
param managedAppSettings object = {}

@description('Where alerts are sent to by mail; empty: there are none.')
param alertEmail string = ''

@description('The image of the publisher as a container app; empty: a host without an app, for the time until there is one.')
param publisherImage string = ''

@description('The image of the managed application as a container app.')
param managedAppImage string = ''

var contexts = concat(publisher ? ['publisher'] : [], managedApp ? ['managed-app'] : [])
var groupName = empty(resourceGroupName) ? 'rg-${environmentName}' : resourceGroupName
var token = toLower(uniqueString(subscription().id, groupName, environmentName))
var toTheLog = {
  destinations: { log: { log: {} } }
  routes: [{ eventType: '*', destination: 'log' }]
}
var tags = { 'azd-env-name': environmentName }
var networkName = isolated ? 'vnet-${token}' : ''

resource group 'Microsoft.Resources/resourceGroups@2024-03-01' = {
  name: groupName
  location: location
  tags: tags
}

module monitoring 'monitoring.bicep' = {
  name: 'monitoring'
  scope: group
  params: {
    location: location
    tags: tags
    token: token
  }
}

module alerts 'alerts.bicep' = if (!empty(alertEmail)) {
  name: 'alerts'
  scope: group
  params: {
    tags: tags
    token: token
    email: alertEmail
    componentId: monitoring.outputs.componentId
  }
}

module logAlerts 'logalerts.bicep' = if (!empty(alertEmail)) {
  name: 'log-alerts'
  scope: group
  params: {
    location: location
    tags: tags
    token: token
    workspaceId: monitoring.outputs.workspaceId
    peopleId: alerts.?outputs.peopleId ?? ''
  }
}

module network 'network.bicep' = if (isolated) {
  name: 'network'
  scope: group
  params: {
    location: location
    tags: tags
    name: networkName
    delegation: plan == 'premium' ? 'Microsoft.Web/serverFarms' : 'Microsoft.App/environments'
  }
}

module apps 'context.bicep' = [for context in contexts: {
  name: context
  scope: group
  params: {
    location: location
    tags: tags
    token: token
    context: context
    plan: plan
    maximumInstances: maximumInstances
    networkName: networkName
    workspaceId: monitoring.outputs.workspaceId
    componentName: monitoring.outputs.componentName
    signInClientId: signInClientId
    signInRequired: signInRequired
    signInTenant: empty(signInTenant) ? tenant().tenantId : signInTenant
    outbox: string(empty(outbox) ? toTheLog : outbox)
    updateEndpoint: updateEndpoint
    instanceId: instanceId
    instanceTenant: instanceTenant
    payloadKey: payloadKey
    more: context == 'publisher' ? publisherSettings : managedAppSettings
    image: context == 'publisher' ? publisherImage : managedAppImage
  }
  dependsOn: [network]
}]

output AZURE_LOCATION string = location
output AZURE_RESOURCE_GROUP string = group.name
output ROUNDHOUSE_APPS array = [for (context, i) in contexts: {
  context: context
  name: apps[i].outputs.name
  id: apps[i].outputs.id
  url: apps[i].outputs.url
  storage: apps[i].outputs.storageName
  registry: apps[i].outputs.registry
  identity: apps[i].outputs.principalId
}]
