package rights

import (
	"encoding/pem"
	"fmt"
	"maps"
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

// Recorder stands between services and the API server and notes what is asked
// there, by account, and what is refused. It may be used concurrently.
type Recorder struct {
	t *testing.T

	mu      sync.Mutex
	used    map[Right]bool
	refused []string
	answers map[Answer]int
}

// Answer is a right that was used on the objects of a namespace, empty for those of none, or
// on the one with the name, and the code of the API server's answer.
type Answer struct {
	Right
	Namespace, Name string
	Code            int
}

// NewRecorder returns one that ends with the test.
func NewRecorder(t *testing.T) *Recorder {
	return &Recorder{t: t, used: map[Right]bool{}, answers: map[Answer]int{}}
}

// Through implements stack.Options.Through: requests are passed on with the
// service's own token.
func (r *Recorder) Through(service, kubeconfig string) (string, error) {
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
	// Clients send their token over TLS only.
	server := httptest.NewTLSServer(&httputil.ReverseProxy{
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
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for name := range config.Clusters {
		config.Clusters[name] = &api.Cluster{Server: server.URL, CertificateAuthorityData: authority}
	}
	recorded := kubeconfig + ".recorded"
	return recorded, clientcmd.WriteToFile(*config, recorded)
}

func (r *Recorder) note(account string, response *http.Response) {
	request := response.Request
	asked, of := rightOf(account, request)
	if !of {
		return
	}
	answer := Answer{Right: asked, Code: response.StatusCode}
	if _, after, found := strings.Cut(request.URL.Path, "/namespaces/"); found {
		parts := strings.Split(after, "/") // namespace, resource, name
		answer.Namespace = parts[0]
		if len(parts) > 2 {
			answer.Name = parts[2]
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !request.URL.Query().Has("dryRun") { // which writes nothing
		r.answers[answer]++
	}
	switch response.StatusCode {
	case http.StatusForbidden, http.StatusUnauthorized:
		r.refused = append(r.refused, fmt.Sprintf("%s (%s %s)", asked, request.Method, request.URL.RequestURI()))
	default:
		r.used[asked] = true
		if asked.Verb == "watch" && request.URL.Query().Get("sendInitialEvents") == "true" {
			// A watch that begins with a list: where the API server cannot do that,
			// clients list (client-go's reflector).
			asked.Verb = "list"
			r.used[asked] = true
		}
	}
}

// rightOf reads a request as the API server's authorizer does; false for what is
// no request for a resource, such as discovery.
func rightOf(account string, request *http.Request) (Right, bool) {
	parts := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	asked := Right{Account: account}
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		asked.Group, parts = parts[1], parts[3:]
	default:
		return asked, false
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	asked.Resource = parts[0]
	named := len(parts) > 1
	if len(parts) > 2 {
		asked.Resource += "/" + parts[2]
	}
	asked.Verb = map[string]string{"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get"}[request.Method]
	switch {
	case asked.Verb == "get" && !named && slices.Contains([]string{"true", "1"}, request.URL.Query().Get("watch")):
		asked.Verb = "watch"
	case asked.Verb == "get" && !named:
		asked.Verb = "list"
	case asked.Verb == "delete" && !named:
		asked.Verb = "deletecollection"
	}
	return asked, true
}

// Seen returns what has been asked and was not refused, and in words what was.
func (r *Recorder) Seen() (used map[Right]bool, refused []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.used), slices.Compact(slices.Sorted(slices.Values(r.refused)))
}

// Answers returns how often each answer was given so far.
func (r *Recorder) Answers() map[Answer]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.answers)
}
