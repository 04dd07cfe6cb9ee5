// A private endpoint of one service, and its address in the service's DNS zone.
param location string
param tags object
param name string
param networkName string
param serviceId string
param groupId string
param zoneName string

resource endpoint 'Microsoft.Network/privateEndpoints@2024-01-01' = {
  name: name
  location: location
  tags: tags
  properties: {
    subnet: { id: resourceId('Microsoft.Network/virtualNetworks/subnets', networkName, 'endpoints') }
    privateLinkServiceConnections: [
      {
        name: name
        properties: {
          privateLinkServiceId: serviceId
          groupIds: [groupId]
        }
      }
    ]
  }
}

resource addresses 'Microsoft.Network/privateEndpoints/privateDnsZoneGroups@2024-01-01' = {
  parent: endpoint
  name: 'default'
  properties: {
    privateDnsZoneConfigs: [
      {
        name: groupId
        properties: { privateDnsZoneId: resourceId('Microsoft.Network/privateDnsZones', zoneName) }
      }
    ]
  }
}
