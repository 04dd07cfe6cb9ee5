// The storage account of one app. The app creates its tables, queues and blob containers when it starts; the template creates the
// container for packages. Access with account keys is disabled.
param location string
param tags object
param name string
param networkName string
param workspaceId string

var isolated = !empty(networkName)

resource account 'Microsoft.Storage/storageAccounts@2023-05-01' = {
  name: name
  location: location
  tags: tags
  kind: 'StorageV2'
  sku: { name: 'Standard_LRS' }
  properties: {
    allowSharedKeyAccess: false
    allowBlobPublicAccess: false
    allowCrossTenantReplication: false
    defaultToOAuthAuthentication: true
    minimumTlsVersion: 'TLS1_2'
    supportsHttpsTrafficOnly: true
    publicNetworkAccess: isolated ? 'Disabled' : 'Enabled'
    networkAcls: {
      bypass: 'AzureServices'
      defaultAction: isolated ? 'Deny' : 'Allow'
    }
  }
}

resource blobs 'Microsoft.Storage/storageAccounts/blobServices@2023-05-01' = {
  parent: account
  name: 'default'
}

// The app's package, which the platform runs.
resource packages 'Microsoft.Storage/storageAccounts/blobServices/containers@2023-05-01' = {
  parent: blobs
  name: 'packages'
  properties: { publicAccess: 'None' }
}

resource metrics 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = {
  name: 'metrics'
  scope: account
  properties: {
    workspaceId: workspaceId
    metrics: [{ category: 'Transaction', enabled: true }]
  }
}

module endpoints 'endpoint.bicep' = [for service in ['blob', 'queue', 'table']: if (isolated) {
  name: '${name}-${service}'
  params: {
    location: location
    tags: tags
    name: 'pep-${name}-${service}'
    networkName: networkName
    serviceId: account.id
    groupId: service
    zoneName: 'privatelink.${service}.${environment().suffixes.storage}'
  }
}]

output id string = account.id
output packages string = '${account.properties.primaryEndpoints.blob}${packages.name}'
