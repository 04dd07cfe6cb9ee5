// The vault of one app: the secrets and certificates that its engines create, and the key that encrypts its payloads.
param location string
param tags object
param name string
param networkName string
param workspaceId string
param payloadKey string

var isolated = !empty(networkName)

resource vault 'Microsoft.KeyVault/vaults@2023-07-01' = {
  name: name
  location: location
  tags: tags
  properties: {
    tenantId: tenant().tenantId
    sku: { family: 'A', name: 'standard' }
    enableRbacAuthorization: true
    enableSoftDelete: true
    softDeleteRetentionInDays: 90
    enablePurgeProtection: true
    publicNetworkAccess: isolated ? 'Disabled' : 'Enabled'
    networkAcls: {
      bypass: 'AzureServices'
      defaultAction: isolated ? 'Deny' : 'Allow'
    }
  }
}

resource key 'Microsoft.KeyVault/vaults/keys@2023-07-01' = if (!empty(payloadKey)) {
  parent: vault
  name: empty(payloadKey) ? 'none' : payloadKey
  properties: {
    kty: 'RSA'
    keySize: 3072
    keyOps: ['wrapKey', 'unwrapKey']
  }
}

resource audit 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = {
  name: 'audit'
  scope: vault
  properties: {
    workspaceId: workspaceId
    logAnalyticsDestinationType: 'Dedicated' // the table AZKVAuditLogs, which has columns, instead of AzureDiagnostics
    logs: [{ categoryGroup: 'audit', enabled: true }]
    metrics: [{ category: 'AllMetrics', enabled: true }]
  }
}

module endpoint 'endpoint.bicep' = if (isolated) {
  name: '${name}-vault'
  params: {
    location: location
    tags: tags
    name: 'pep-${name}'
    networkName: networkName
    serviceId: vault.id
    groupId: 'vault'
    zoneName: 'privatelink${replace(environment().suffixes.keyvaultDns, '.vault.', '.vaultcore.')}'
  }
}

output url string = vault.properties.vaultUri
