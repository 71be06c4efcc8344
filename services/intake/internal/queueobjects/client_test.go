package queueobjects

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// clientOf is a client of an API server that a handler stands for.
func clientOf(t *testing.T, handler http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	content := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":%q}}],"users":[{"name":"u"}],
"contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],"current-context":"x"}`, server.URL)
	if err := os.WriteFile(kubeconfig, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	client, err := Connect(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// TestAKindThatGoesMeanwhileIsNotWaitedFor: a definition that goes between the look for kinds
// and the list of its objects, as when definitions are deleted one by one, does not stop the
// sync of the others for ever.
func TestAKindThatGoesMeanwhileIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	client := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/cohorts") || r.URL.Query().Get("watch") != "" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"apiVersion":"kueue.x-k8s.io/v1beta1","kind":"List","metadata":{"resourceVersion":"1"},"items":[]}`)
	})
	client.patience = 200 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	err := client.Watch(ctx, map[string]string{"cohorts": "v1beta1", "resourceflavors": "v1beta1"}, func() {})
	if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "list cohorts.kueue.x-k8s.io") {
		t.Errorf("the watch returns %v; want that cohorts cannot be listed, before the context ends", err)
	}
	if err := client.Watch(ctx, map[string]string{"resourceflavors": "v1beta1"}, func() {}); err != nil {
		t.Errorf("without cohorts: %v", err)
	}
}
