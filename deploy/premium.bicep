// An app on Elastic Premium: instances that always run, for engines that must begin immediately. It has no content share, because
// a share needs keys of the storage account. Instead it runs the package in the container packages.
param location string
param tags object
param name string
param context string
param identityId string
param settings object
param packages string
param maximumInstances int
param networkName string

var platform = {
  FUNCTIONS_EXTENSION_VERSION: '~4'
  FUNCTIONS_WORKER_RUNTIME: 'custom'
  WEBSITE_RUN_FROM_PACKAGE: '${packages}/app.zip'
  WEBSITE_RUN_FROM_PACKAGE_BLOB_MI_RESOURCE_ID: identityId
}

resource plan 'Microsoft.Web/serverfarms@2023-12-01' = {
  name: 'plan-${name}'
  location: location
  tags: tags
  kind: 'elastic'
  sku: { name: 'EP1', tier: 'ElasticPremium' }
  properties: {
    reserved: true
    maximumElasticWorkerCount: maximumInstances
  }
}

resource app 'Microsoft.Web/sites@2023-12-01' = {
  name: name
  location: location
  tags: tags
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
    siteConfig: {
      minTlsVersion: '1.2'
      ftpsState: 'Disabled'
      vnetRouteAllEnabled: !empty(networkName)
      functionsRuntimeScaleMonitoringEnabled: !empty(networkName)
      appSettings: [for setting in items(union(settings, platform)): { name: setting.key, value: setting.value }]
    }
  }
}
