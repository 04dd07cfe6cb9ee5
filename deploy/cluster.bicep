// The environment of an app on Azure Container Apps and the registry of its images.
param location string
param tags object
param name string
param context string
param token string
param principalId string
param networkName string
param workspaceId string

var short = context == 'publisher' ? 'pub' : 'app'
var pull = '7f951dda-4ed3-4680-a7ca-43fe172d538d' // AcrPull

resource registry 'Microsoft.ContainerRegistry/registries@2023-07-01' = {
  name: 'cr${short}${token}'
  location: location
  tags: tags
  sku: { name: 'Basic' }
  properties: {
    adminUserEnabled: false
  }
}

resource pulls 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(registry.id, principalId, pull)
  scope: registry
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', pull)
    principalId: principalId
    principalType: 'ServicePrincipal'
  }
}

resource house 'Microsoft.App/managedEnvironments@2024-03-01' = {
  name: 'cae-${name}'
  location: location
  tags: tags
  properties: {
    appLogsConfiguration: { destination: 'azure-monitor' }
    workloadProfiles: [{ name: 'Consumption', workloadProfileType: 'Consumption' }]
    vnetConfiguration: empty(networkName) ? null : {
      infrastructureSubnetId: resourceId('Microsoft.Network/virtualNetworks/subnets', networkName, context)
    }
  }
}

resource logs 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = {
  name: 'logs'
  scope: house
  properties: {
    workspaceId: workspaceId
    logs: [{ categoryGroup: 'allLogs', enabled: true }]
    metrics: [{ category: 'AllMetrics', enabled: true }]
  }
}

output environmentId string = house.id
output domain string = house.properties.defaultDomain
output registry string = registry.properties.loginServer
