package relist_test

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"muster.dev/muster/pkg/kube/relist"
)

// answers gives the same body to every request.
type answers []byte

// RoundTrip implements http.RoundTripper.
func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(a)), Request: r}, nil
}

// FuzzAnswer checks that after any answer to the list a watch is opened or has expired.
func FuzzAnswer(f *testing.F) {
	for _, answer := range []string{
		`{"metadata":{"resourceVersion":"7"},"items":[]}`, `{"metadata":{"resourceVersion":"1000"}}`, `{"metadata":{"resourceVersion":"x"}}`, `[`, ``,
	} {
		f.Add([]byte(answer))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://api.test/api/v1/pods?watch=true&resourceVersion=100", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := relist.Wrap(answers(answer)).RoundTrip(request)
		if err != nil || response.StatusCode != http.StatusOK && response.StatusCode != http.StatusGone {
			t.Errorf("the watch is answered with %v, %v", response, err)
		}
	})
}
