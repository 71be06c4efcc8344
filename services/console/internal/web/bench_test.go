package web

import (
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/services/internal/client/overhttp"
)

// BenchmarkFirstByte measures how long each page of a site with 10,000 nodes and 100,000 waiting
// workloads takes until its first byte, with an HTTP API that answers from memory. Answers that a
// caller has had a moment ago are reused, as by open pages.
func BenchmarkFirstByte(b *testing.B) {
	server := httptest.NewServer(newAPI(10_000, 100_000))
	defer server.Close()
	client, err := overhttp.New(overhttp.Settings{URL: server.URL})
	if err != nil {
		b.Fatal(err)
	}
	handler, err := New(Options{API: client, RackLabel: "rack", Logger: zap.NewNop(), Now: time.Now})
	if err != nil {
		b.Fatal(err)
	}
	console := httptest.NewServer(handler)
	defer console.Close()
	for _, path := range paths() {
		b.Run(path, func(b *testing.B) {
			jar, err := cookiejar.New(nil)
			if err != nil {
				b.Fatal(err)
			}
			browser := &http.Client{Jar: jar}
			login, err := browser.PostForm(console.URL+"/login", url.Values{"token": {"olga"}})
			if err != nil {
				b.Fatal(err)
			}
			_ = login.Body.Close() // only its cookie counts
			for b.Loop() {
				answer, err := browser.Get(console.URL + path)
				if err != nil || answer.StatusCode != http.StatusOK {
					b.Fatalf("%v, %v", answer, err)
				}
				_ = answer.Body.Close() // the first byte is there
			}
		})
	}
}
