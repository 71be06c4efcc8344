package contract

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"muster.dev/muster/pkg/message/httpapi"
	"muster.dev/muster/pkg/message/query"
)

// openAPIFile is where intake serves it from.
var openAPIFile = filepath.Join("..", "services", "intake", "internal", "httpserver", "openapi.json")

// inline is the schema of a type as plain data.
func inline(t *testing.T, of any) any {
	t.Helper()
	r := reflector(t)
	r.DoNotReference = true
	schema := r.Reflect(of)
	schema.Version = ""
	encoded, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	var plain any
	if err := json.Unmarshal(encoded, &plain); err != nil {
		t.Fatal(err)
	}
	return plain
}

// openAPI describes the HTTP API: OpenAPI 3.1.
func openAPI(t *testing.T) object {
	paths, schemas := object{}, object{"Problem": inline(t, &httpapi.Problem{})}
	for _, o := range httpapi.Operations() {
		path, known := paths[o.Path].(object)
		if !known {
			path = object{}
			paths[o.Path] = path
		}
		name := strings.ToUpper(o.ID[:1]) + o.ID[1:]
		schemas[name] = inline(t, o.Answer)
		if o.Body != nil {
			schemas[requestName(o)] = inline(t, o.Body)
		}
		path[strings.ToLower(o.Method)] = described(o, object{"$ref": "#/components/schemas/" + name})
	}
	paths["/openapi.json"] = object{"get": object{
		"operationId": "openapi", "summary": "This description", "security": []any{},
		"responses": object{"200": object{"description": "OpenAPI", "content": object{"application/json": object{}}}},
	}}
	return object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Muster", "version": "1", "license": object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
			"description": "The HTTP API of intake. A bearer token or a client certificate names the caller. Callers may see and cancel the workloads that they may submit.",
		},
		"security": []any{object{"token": []any{}}, object{"certificate": []any{}}},
		"paths":    paths,
		"components": object{
			"schemas":         schemas,
			"securitySchemes": object{"token": object{"type": "http", "scheme": "bearer"}, "certificate": object{"type": "mutualTLS"}},
		},
	}
}

func described(o httpapi.Operation, answer object) object {
	content := object{"application/json": object{"schema": answer}}
	if o.Stream {
		content = object{"text/event-stream": object{"schema": object{"type": "string", "description": "Server-sent events; the data of each is JSON of the type."}, "x-data": answer}}
	}
	problem := object{"application/json": object{"schema": object{"$ref": "#/components/schemas/Problem"}}}
	responses := object{fmt.Sprint(o.Status): object{"description": http.StatusText(o.Status), "content": content}}
	if o.Accepted {
		responses["202"] = object{"description": "Accepted, and not stored yet: read Location", "content": content}
	}
	for _, status := range append([]int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusServiceUnavailable}, o.Refusals...) {
		responses[fmt.Sprint(status)] = object{"description": http.StatusText(status), "content": problem}
	}
	parameters := []any{}
	for _, found := range parameter.FindAllStringSubmatch(o.Path, -1) {
		parameters = append(parameters, object{"name": found[1], "in": "path", "required": true, "schema": object{"type": "string"}})
	}
	for _, p := range o.Parameters {
		in, kind := "query", "string"
		if p.Header {
			in = "header"
		}
		if p.Number {
			kind = "integer"
		}
		parameters = append(parameters, object{"name": p.Name, "in": in, "description": p.What, "schema": object{"type": kind}})
	}
	operation := object{"operationId": o.ID, "summary": o.Summary, "parameters": parameters, "responses": responses}
	if o.Manifest {
		manifest := object{"schema": object{"type": "object", "description": "A RayCluster, RayJob, RayService or AppWrapper."}}
		operation["requestBody"] = object{"required": true, "content": object{"application/json": manifest, "application/yaml": manifest}}
	}
	if o.Body != nil {
		operation["requestBody"] = object{"required": true, "content": object{"application/json": object{"schema": object{"$ref": "#/components/schemas/" + requestName(o)}}}}
	}
	return operation
}

// requestName is that of the schema of a body.
func requestName(o httpapi.Operation) string { return strings.ToUpper(o.ID[:1]) + o.ID[1:] + "Request" }

func TestOpenAPI(t *testing.T) {
	current(t, openAPIFile, indented(t, openAPI(t)))
}

// Every question that queue-manager answers is described.
func TestAllQuestionsAreDescribed(t *testing.T) {
	var described []string
	for _, q := range questions() {
		if strings.HasPrefix(q.subject, "muster.query.") {
			described = append(described, q.subject)
		}
	}
	all := append(query.Subjects(), query.TruthSubject("{cluster}"))
	slices.Sort(all)
	slices.Sort(described)
	if !slices.Equal(all, described) {
		t.Errorf("answered are %v, described %v", all, described)
	}
}

// References of the documents lead somewhere.
func TestReferencesLeadSomewhere(t *testing.T) {
	for name, document := range map[string]object{"OpenAPI": openAPI(t), "AsyncAPI": asyncAPI(func(of any) any { return inline(t, of) })} {
		t.Run(name, func(t *testing.T) {
			encoded := string(indented(t, document))
			var plain any
			if err := json.Unmarshal([]byte(encoded), &plain); err != nil {
				t.Fatal(err)
			}
			found := regexp.MustCompile(`"\$ref": "#/([^"]+)"`).FindAllStringSubmatch(encoded, -1)
			if len(found) == 0 {
				t.Errorf("%s has no references", name)
			}
			for _, match := range found {
				at := plain
				for step := range strings.SplitSeq(match[1], "/") {
					inner, isMap := at.(map[string]any)
					if !isMap || inner[step] == nil {
						t.Errorf("%s: #/%s leads nowhere: %v has no %s", name, match[1], slices.Sorted(maps.Keys(inner)), step)
						break
					}
					at = inner[step]
				}
			}
		})
	}
}
