// Package marketplacefake fakes the Azure commercial marketplace, Azure Resource Manager and Microsoft Entra for this
// program, on the level of HTTP: the fulfilment API with operations that are accepted after ten seconds, the webhook's
// sender with its timeout and its retries, managed applications with the sender of their notifications, which appends
// /resource, and an issuer of tokens with its key set.
//
// A [Market] is an http.Handler. Through [Market.Transport] a client reaches it without a socket, also in a bubble of
// testing/synctest, whose clock is then the market's; [Market.Serve] runs it as a loopback HTTPS server. It is for
// tests.
package marketplacefake
