// An app on Flex Consumption: it costs nothing while it is idle, and has no slots. functionAppConfig sets the runtime; this plan
// refuses the setting FUNCTIONS_WORKER_RUNTIME.
param location string
param tags object
param name string
param context string
param identityId string
param settings object
param packages string
param maximumInstances int
param networkName string

resource plan 'Microsoft.Web/serverfarms@2023-12-01' = {
  name: 'plan-${name}'
  location: location
  tags: tags
  kind: 'functionapp'
  sku: { name: 'FC1', tier: 'FlexConsumption' }
  properties: { reserved: true }
}

resource app 'Microsoft.Web/sites@2023-12-01' = {
  name: name
  location: location
  tags: union(tags, { 'azd-service-name': context })
  kind: 'functionapp,linux'
  identity: {
    type: 'UserAssigned'
    userAssignedIdentities: { '${identityId}': {} }
  }
  properties: {
    serverFarmId: plan.id
    httpsOnly: true
    virtualNetworkSubnetId: empty(networkName) ? null : resourceId('Microsoft.Network/virtualNetworks/subnets', networkName, context)
    keyVaultReferenceIdentity: identityId
    functionAppConfig: {
      deployment: {
        storage: {
          type: 'blobContainer'
          value: packages
          authentication: {
            type: 'UserAssignedIdentity'
            userAssignedIdentityResourceId: identityId
          }
        }
      }
      runtime: { name: 'custom', version: '1.0' }
      scaleAndConcurrency: {
        maximumInstanceCount: max(maximumInstances, 40)
        instanceMemoryMB: 2048
      }
    }
    siteConfig: {
      minTlsVersion: '1.2'
      appSettings: [for setting in items(settings): { name: setting.key, value: setting.value }]
    }
  }
}
