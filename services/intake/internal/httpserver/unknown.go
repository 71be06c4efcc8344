package httpserver

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"muster.dev/muster/pkg/message/httpapi"
)

// known refuses parameters that the operation does not have: one that is misspelt would
// have no effect.
func known(operation httpapi.Operation, handle handler) handler {
	var names []string
	for _, p := range operation.Parameters {
		if !p.Header {
			names = append(names, p.Name)
		}
	}
	want := "want none"
	if len(names) > 0 {
		want = "want " + strings.Join(names, ", ")
	}
	return func(w http.ResponseWriter, r *http.Request, caller string) error {
		for _, name := range slices.Sorted(maps.Keys(r.URL.Query())) {
			if !slices.Contains(names, name) {
				return fail(http.StatusBadRequest, "there is no parameter %.80q; %s", name, want)
			}
		}
		return handle(w, r, caller)
	}
}

// addRefusals answers requests for paths and methods that do not exist as all others are
// answered, in JSON.
func (s *Server) addRefusals(mux *http.ServeMux) {
	methods := map[string][]string{"/openapi.json": {http.MethodGet}}
	for _, operation := range httpapi.Operations() {
		methods[operation.Path] = append(methods[operation.Path], operation.Method)
	}
	for path, allowed := range methods {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Allow", strings.Join(allowed, ", "))
			s.writeProblem(w, r, fail(http.StatusMethodNotAllowed, "method %.20q: want %s for %.200q", r.Method, strings.Join(allowed, " or "), r.URL.Path))
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.writeProblem(w, r, fail(http.StatusNotFound, "there is no path %.200q; GET /openapi.json lists them", r.URL.Path))
	})
}
