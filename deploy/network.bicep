// The network of apps whose storage and vaults are unreachable from outside: a subnet for each profile, one for the private
// endpoints, and the DNS zones that resolve the services' names to the endpoints' addresses.
param location string
param tags object
param name string
param delegation string

var zones = [
  'privatelink.blob.${environment().suffixes.storage}'
  'privatelink.queue.${environment().suffixes.storage}'
  'privatelink.table.${environment().suffixes.storage}'
  'privatelink${replace(environment().suffixes.keyvaultDns, '.vault.', '.vaultcore.')}'
]

resource network 'Microsoft.Network/virtualNetworks@2024-01-01' = {
  name: name
  location: location
  tags: tags
  properties: {
    addressSpace: { addressPrefixes: ['10.80.0.0/16'] }
    subnets: [
      {
        name: 'endpoints'
        properties: {
          addressPrefix: '10.80.0.0/24'
          privateEndpointNetworkPolicies: 'Disabled'
        }
      }
      {
        name: 'publisher'
        properties: {
          addressPrefix: '10.80.1.0/24'
          delegations: [{ name: 'app', properties: { serviceName: delegation } }]
        }
      }
      {
        name: 'managed-app'
        properties: {
          addressPrefix: '10.80.2.0/24'
          delegations: [{ name: 'app', properties: { serviceName: delegation } }]
        }
      }
    ]
  }
}

resource zone 'Microsoft.Network/privateDnsZones@2020-06-01' = [for zoneName in zones: {
  name: zoneName
  location: 'global'
  tags: tags
}]

resource link 'Microsoft.Network/privateDnsZones/virtualNetworkLinks@2020-06-01' = [for (zoneName, i) in zones: {
  parent: zone[i]
  name: name
  location: 'global'
  tags: tags
  properties: {
    registrationEnabled: false
    virtualNetwork: { id: network.id }
  }
}]
