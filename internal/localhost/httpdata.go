package localhost

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"
)

// serveJSON runs an http function whose requests are not passed on as they are.
func (h *Host) serveJSON(w http.ResponseWriter, r *http.Request, f *function, id string, parameters map[string]string) error {
	var body []byte
	// The real host loses a chunked body.
	if r.ContentLength > 0 {
		var err error
		if body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest)); err != nil {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return fmt.Errorf("read the request: %w", err)
		}
	}
	e := newEnvelope(f.name, h.config.Now())
	e.putRequest(f.trigger.Name, r, body, parameters)
	value, err := h.run(r.Context(), f, id, e)
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return err
	}
	if err := writeOutput(w, value); err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return err
	}
	return nil
}

// putRequest describes a request in the invocation's body, and copies its parameters, query and JSON members into the
// metadata.
func (e envelope) putRequest(name string, r *http.Request, body []byte, parameters map[string]string) {
	headers, flatHeaders, query := map[string][]string{"Host": {r.Host}}, map[string]string{"Host": r.Host}, map[string]string{}
	for header, values := range r.Header {
		headers[header], flatHeaders[header] = values, strings.Join(values, ",")
	}
	for key, values := range r.URL.Query() {
		query[key] = strings.Join(values, ",")
	}
	address := "http://" + r.Host + r.URL.Path
	if r.URL.RawQuery != "" {
		address += "?" + r.URL.RawQuery
	}
	request := map[string]any{
		"Url": address, "Method": r.Method, "Query": query, "Headers": headers, "Params": parameters,
		"Identities": []any{map[string]any{
			"AuthenticationType": nil, "IsAuthenticated": false, "Actor": nil, "BootstrapContext": nil,
			"Claims": []any{}, "Label": nil, "Name": nil,
			"NameClaimType": "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/name",
			"RoleClaimType": "http://schemas.microsoft.com/ws/2008/06/identity/claims/role",
		}},
	}
	if len(body) > 0 {
		request["Body"] = requestBody(r.Header.Get("Content-Type"), body)
	}
	e.Data[name] = encode(request)
	e.spill(body)
	for key, value := range query {
		e.meta(key, nested(value))
	}
	for key, value := range parameters {
		e.meta(key, nested(value))
	}
	e.meta("Query", encode(query))
	e.meta("Headers", encode(flatHeaders))
}

// requestBody returns text, or base64 for a binary body.
func requestBody(contentType string, body []byte) string {
	mediaType, _, _ := mime.ParseMediaType(contentType)
	if mediaType == "application/octet-stream" || strings.HasPrefix(mediaType, "multipart/") || !utf8.Valid(body) {
		return base64.StdEncoding.EncodeToString(body)
	}
	return string(body)
}

// writeOutput answers with the value of an http binding: a response object if it has a body, otherwise the value
// itself.
func writeOutput(w http.ResponseWriter, value json.RawMessage) error {
	if len(value) == 0 {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	var response struct {
		StatusCode any
		Headers    map[string]any
		Body       json.RawMessage
	}
	if !bytes.HasPrefix(bytes.TrimSpace(value), []byte("{")) {
		return writeBody(w, http.StatusOK, value)
	}
	if err := json.Unmarshal(value, &response); err != nil {
		return fmt.Errorf("read the http output: %w", describeJSON(err))
	}
	if response.Body == nil {
		return writeBody(w, http.StatusOK, value)
	}
	status, err := statusCode(response.StatusCode)
	if err != nil {
		return err
	}
	for name, v := range response.Headers {
		w.Header().Set(name, fmt.Sprint(v))
	}
	return writeBody(w, status, response.Body)
}

// statusCode reads a number or its text; a missing one means 200.
func statusCode(value any) (int, error) {
	if value == nil {
		return http.StatusOK, nil
	}
	status, err := strconv.Atoi(fmt.Sprint(value))
	if err != nil || status < 200 || status > 599 {
		return 0, fmt.Errorf("the http output's statusCode %v is not one", value)
	}
	return status, nil
}

// writeBody sends text as it is and anything else as indented JSON, both as plain text unless a header says otherwise.
func writeBody(w http.ResponseWriter, status int, body json.RawMessage) error {
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	}
	w.WriteHeader(status)
	content := indented(body)
	if text, ok := jsonText(body); ok {
		content = []byte(text)
	}
	if _, err := w.Write(content); err != nil {
		return fmt.Errorf("answer the client: %w", err)
	}
	return nil
}
