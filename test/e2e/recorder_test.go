package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// recorder stands between services and the API server and notes what is asked
// there, by account, and what is refused.
type recorder struct {
	t *testing.T

	mu      sync.Mutex
	used    map[right]bool
	refused []string
}

func newRecorder(t *testing.T) *recorder {
	return &recorder{t: t, used: map[right]bool{}}
}

// through implements stack.Options.Through: requests are passed on with the
// service's own token.
func (r *recorder) through(service, kubeconfig string) (string, error) {
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		return "", err
	}
	client, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return "", err
	}
	target, err := url.Parse(client.Host)
	if err != nil {
		return "", err
	}
	transport, err := rest.TransportFor(&rest.Config{Host: client.Host, TLSClientConfig: rest.TLSClientConfig{CAData: client.CAData, CAFile: client.CAFile}})
	if err != nil {
		return "", err
	}
	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:       func(p *httputil.ProxyRequest) { p.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // watches
		ModifyResponse: func(response *http.Response) error {
			r.note("muster-"+service, response)
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	})
	r.t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	for name := range config.Clusters {
		config.Clusters[name] = &api.Cluster{Server: server.URL}
	}
	recorded := kubeconfig + ".recorded"
	return recorded, clientcmd.WriteToFile(*config, recorded)
}

func (r *recorder) note(account string, response *http.Response) {
	request := response.Request
	asked, of := rightOf(account, request)
	if !of {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch response.StatusCode {
	case http.StatusForbidden, http.StatusUnauthorized:
		r.refused = append(r.refused, fmt.Sprintf("%s (%s %s)", asked, request.Method, request.URL.Path))
	default:
		r.used[asked] = true
	}
}

// rightOf reads a request as the API server's authorizer does; false for what is
// no request for a resource, such as discovery.
func rightOf(account string, request *http.Request) (right, bool) {
	parts := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	asked := right{account: account}
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		asked.group, parts = parts[1], parts[3:]
	default:
		return asked, false
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	asked.resource = parts[0]
	named := len(parts) > 1
	if len(parts) > 2 {
		asked.resource += "/" + parts[2]
	}
	asked.verb = map[string]string{"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get"}[request.Method]
	switch {
	case asked.verb == "get" && !named && slices.Contains([]string{"true", "1"}, request.URL.Query().Get("watch")):
		asked.verb = "watch"
	case asked.verb == "get" && !named:
		asked.verb = "list"
	case asked.verb == "delete" && !named:
		asked.verb = "deletecollection"
	}
	return asked, true
}

func (r *recorder) seen() (used map[right]bool, refused []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.used, slices.Compact(slices.Sorted(slices.Values(r.refused)))
}
