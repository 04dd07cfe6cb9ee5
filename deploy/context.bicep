// One app with its own resources: identity, roles, storage account, vault, settings and hosting plan.
param location string
param tags object
param token string
param context string
param plan string
param maximumInstances int
param networkName string
param workspaceId string
param componentName string
param signInClientId string
param signInRequired bool
param signInTenant string
param outbox string
param updateEndpoint string
param instanceId string
param instanceTenant string
param payloadKey string
param more object
param image string

var short = context == 'publisher' ? 'pub' : 'app'
var appName = '${context}-${token}'
var storageName = 'st${short}${token}'
var vaultName = 'kv-${short}-${token}'

// The identity is user-assigned: its roles exist before the app first starts, and remain when the app is recreated.
resource identity 'Microsoft.ManagedIdentity/userAssignedIdentities@2023-01-31' = {
  name: 'id-${short}-${token}'
  location: location
  tags: tags
}

resource component 'Microsoft.Insights/components@2020-02-02' existing = {
  name: componentName
}

module storage 'storage.bicep' = {
  name: 'storage-${context}'
  params: {
    location: location
    tags: tags
    name: storageName
    networkName: networkName
    workspaceId: workspaceId
  }
}

module vault 'vault.bicep' = {
  name: 'vault-${context}'
  params: {
    location: location
    tags: tags
    name: vaultName
    networkName: networkName
    workspaceId: workspaceId
    payloadKey: payloadKey
  }
}

module roles 'roles.bicep' = {
  name: 'roles-${context}'
  params: {
    context: context
    principalId: identity.properties.principalId
    storageName: storageName
    vaultName: vaultName
    componentName: componentName
    payloadKey: payloadKey
  }
  dependsOn: [storage, vault]
}

var common = {
  AzureWebJobsStorage__blobServiceUri: 'https://${storageName}.blob.${environment().suffixes.storage}'
  AzureWebJobsStorage__queueServiceUri: 'https://${storageName}.queue.${environment().suffixes.storage}'
  AzureWebJobsStorage__tableServiceUri: 'https://${storageName}.table.${environment().suffixes.storage}'
  AzureWebJobsStorage__credential: 'managedidentity'
  AzureWebJobsStorage__clientId: identity.properties.clientId
  APPLICATIONINSIGHTS_CONNECTION_STRING: component.properties.ConnectionString
  APPLICATIONINSIGHTS_AUTHENTICATION_STRING: 'ClientId=${identity.properties.clientId};Authorization=AAD'
  ROUNDHOUSE_CONTEXT: context
  ROUNDHOUSE_KEY_VAULT_URL: vault.outputs.url
  ROUNDHOUSE_OUTBOX: outbox
  ROUNDHOUSE_HOME_TENANT: signInTenant
}
var ofContext = context == 'publisher'
  ? { ROUNDHOUSE_SPN_TENANT: tenant().tenantId }
  : { ROUNDHOUSE_UPDATE_ENDPOINT: updateEndpoint }
var instance = context == 'publisher' || empty(instanceId)
  ? {}
  : empty(instanceTenant) ? { ROUNDHOUSE_INSTANCE_ID: instanceId } : { ROUNDHOUSE_INSTANCE_ID: instanceId, ROUNDHOUSE_TENANT_ID: instanceTenant }
var encryption = empty(payloadKey) ? {} : { ROUNDHOUSE_PAYLOAD_KEY: payloadKey }
var settings = union(common, ofContext, instance, encryption, more)

module flex 'flex.bicep' = if (plan == 'flex') {
  name: 'app-${context}'
  params: {
    location: location
    tags: tags
    name: appName
    context: context
    identityId: identity.id
    settings: settings
    packages: storage.outputs.packages
    maximumInstances: maximumInstances
    networkName: networkName
  }
  dependsOn: [roles]
}

module premium 'premium.bicep' = if (plan == 'premium') {
  name: 'app-${context}'
  params: {
    location: location
    tags: tags
    name: appName
    context: context
    identityId: identity.id
    settings: settings
    packages: storage.outputs.packages
    maximumInstances: maximumInstances
    networkName: networkName
  }
  dependsOn: [roles]
}

module cluster 'cluster.bicep' = if (plan == 'container-apps') {
  name: 'cluster-${context}'
  params: {
    location: location
    tags: tags
    name: appName
    context: context
    token: token
    principalId: identity.properties.principalId
    networkName: networkName
    workspaceId: workspaceId
  }
}

module container 'container.bicep' = if (plan == 'container-apps') {
  name: 'app-${context}'
  params: {
    location: location
    tags: tags
    name: appName
    identityId: identity.id
    environmentId: cluster.?outputs.environmentId ?? ''
    domain: cluster.?outputs.domain ?? ''
    registry: cluster.?outputs.registry ?? ''
    settings: settings
    maximumInstances: maximumInstances
    image: image
    signIn: !empty(signInClientId)
  }
  dependsOn: [roles, containerSignInBefore]
}

// An app that trusts the platform's caller headers must not run before the platform's authentication is on. So the template turns
// authentication on before it changes the settings of an existing app, and after it has created a new one, whose image is empty.
module containerSignInBefore 'containersignin.bicep' = if (plan == 'container-apps' && !empty(signInClientId) && !empty(image)) {
  name: 'signin-before-${context}'
  params: {
    name: appName
    clientId: signInClientId
    required: signInRequired
    tenantId: signInTenant
  }
}

module containerSignInAfter 'containersignin.bicep' = if (plan == 'container-apps' && !empty(signInClientId) && empty(image)) {
  name: 'signin-after-${context}'
  params: {
    name: appName
    clientId: signInClientId
    required: signInRequired
    tenantId: signInTenant
  }
  dependsOn: [container]
}

module signIn 'signin.bicep' = if (plan != 'container-apps') {
  name: 'signin-${context}'
  params: {
    name: appName
    workspaceId: workspaceId
    clientId: signInClientId
    required: signInRequired
    tenantId: signInTenant
  }
  dependsOn: [flex, premium]
}

output name string = appName
output id string = plan == 'container-apps' ? resourceId('Microsoft.App/containerApps', appName) : resourceId('Microsoft.Web/sites', appName)
output url string = plan == 'container-apps' ? (container.?outputs.url ?? '') : 'https://${appName}.azurewebsites.net'
output registry string = plan == 'container-apps' ? (cluster.?outputs.registry ?? '') : ''
output storageName string = storageName
output principalId string = identity.properties.principalId
