// The roles of one app's identity; docs/security.md gives the reason for each.
param context string
param principalId string
param storageName string
param vaultName string
param componentName string
param payloadKey string

var storageRoles = [
  'b7e6dc6d-f1e8-4753-8033-0f276bb0955b' // Storage Blob Data Owner
  '974c5e8b-45b9-4653-ba55-5f855dd0fb88' // Storage Queue Data Contributor
  '0a9a7e1f-b9d0-4cc4-a60d-0319b160aaa3' // Storage Table Data Contributor
]
var vaultRoles = concat(
  ['4633458b-17de-408a-b874-0445c86b69e6'], // Key Vault Secrets User
  context == 'publisher' ? [
    'b86a8fe4-44ce-4948-aee5-eccb2c155cd7' // Key Vault Secrets Officer
    'a4417e6f-fecd-4de8-b567-7b0420556985' // Key Vault Certificates Officer
  ] : [],
  empty(payloadKey) ? [] : ['e147488a-f6f5-4113-8e2d-b22465e65bf6'] // Key Vault Crypto Service Encryption User
)
var componentRoles = ['3913510d-42f4-4e42-8a64-420c390055eb'] // Monitoring Metrics Publisher

resource storage 'Microsoft.Storage/storageAccounts@2023-05-01' existing = {
  name: storageName
}

resource vault 'Microsoft.KeyVault/vaults@2023-07-01' existing = {
  name: vaultName
}

resource component 'Microsoft.Insights/components@2020-02-02' existing = {
  name: componentName
}

resource onStorage 'Microsoft.Authorization/roleAssignments@2022-04-01' = [for role in storageRoles: {
  name: guid(storage.id, principalId, role)
  scope: storage
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', role)
    principalId: principalId
    principalType: 'ServicePrincipal'
  }
}]

resource onVault 'Microsoft.Authorization/roleAssignments@2022-04-01' = [for role in vaultRoles: {
  name: guid(vault.id, principalId, role)
  scope: vault
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', role)
    principalId: principalId
    principalType: 'ServicePrincipal'
  }
}]

resource onComponent 'Microsoft.Authorization/roleAssignments@2022-04-01' = [for role in componentRoles: {
  name: guid(component.id, principalId, role)
  scope: component
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', role)
    principalId: principalId
    principalType: 'ServicePrincipal'
  }
}]
