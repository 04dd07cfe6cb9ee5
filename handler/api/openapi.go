package api

import (
	"context"
	_ "embed" // the document
)

// openAPIDocument describes every path of the API, in OpenAPI 3.1. The tests hold the two against each other.
//
//go:embed openapi.json
var openAPIDocument []byte

// openAPI returns the whole document, for any configuration.
func (a *api) openAPI(context.Context, *request) (reply, error) {
	return reply{document: &document{"application/json", openAPIDocument}}, nil
}
