// Package relist makes clients list again after etcd was restored, instead of resuming
// their watches.
//
// A client resumes a watch from the last resource version that it saw. After a restore
// of etcd that version lies in the future: the API server accepts the watch, sends
// nothing until its versions have come that far, and never sends what was lost. So the
// transport of this package answers that the version has expired, and the client lists
// everything again.
//
// Versions alone do not reveal every restore: the API server may have had as many new
// versions by then. So a watch also lists again if it has not done so for ListEvery.
//
// The package is not for retrying requests, which client-go does.
package relist

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ListEvery is the age of a list from which on a resumed watch lists again. client-go's
// watches last five to ten minutes, so a list comes within twenty minutes.
const ListEvery = 10 * time.Minute

// Wrap is the transport wrapper for the rest.Config of clients that watch.
func Wrap(next http.RoundTripper) http.RoundTripper {
	return &transport{next: next, away: map[string]bool{}, listed: map[string]time.Time{}}
}

type transport struct {
	next http.RoundTripper

	mu sync.Mutex
	// away has the watches that failed to resume: the API server may have been
	// restored to an older state, and reached the old versions again since.
	away map[string]bool
	// listed is the time of each watch's last list.
	listed map[string]time.Time
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	from, resumes := version(r)
	if !resumes {
		return t.next.RoundTrip(r)
	}
	if t.wasAway(r) {
		return expired(r, "the API server was away"), nil
	}
	if t.isOld(r) {
		return expired(r, fmt.Sprintf("the last list is older than %s", ListEvery)), nil
	}
	now, known, err := t.now(r)
	if err != nil {
		t.isAway(r)
		return nil, err
	}
	if known && now < from {
		return expired(r, fmt.Sprintf("the API server is at resource version %d, and was at %d", now, from)), nil
	}
	response, err := t.next.RoundTrip(r)
	if err != nil || response.StatusCode >= http.StatusInternalServerError {
		t.isAway(r)
	}
	return response, err
}

// version returns the resource version from which a request resumes a watch. A watch
// that begins with a list does not resume. Watches of Leases are left alone: package lease reads
// its Lease again by itself when a watch shows nothing, and has no right to list others.
func version(r *http.Request) (from uint64, resumes bool) {
	if r.Method != http.MethodGet || ofLeases(r.URL.Path) {
		return 0, false
	}
	query := r.URL.Query()
	watching, _ := strconv.ParseBool(query.Get("watch")) // false if it is no boolean
	from, err := strconv.ParseUint(query.Get("resourceVersion"), 10, 64)
	return from, watching && err == nil && from > 0 && query.Get("sendInitialEvents") == ""
}

// ofLeases reports whether a path is of the Leases of a namespace, and not of another resource with
// this name. There may be more before it, where a gateway leads to API servers.
func ofLeases(path string) bool {
	_, in, is := strings.Cut(path, "/apis/coordination.k8s.io/v1/namespaces/")
	_, resource, _ := strings.Cut(in, "/")
	return is && resource == "leases"
}

// key identifies a watch, regardless of its version.
func key(r *http.Request) string {
	query := r.URL.Query()
	return r.URL.Path + "?" + query.Get("labelSelector") + "&" + query.Get("fieldSelector")
}

func (t *transport) isAway(r *http.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.away[key(r)] = true
}

// wasAway reports whether the watch failed to resume, and resets that: a list follows.
func (t *transport) wasAway(r *http.Request) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.away[key(r)]
	delete(t.away, key(r))
	if was {
		t.listed[key(r)] = time.Now()
	}
	return was
}

// isOld reports whether the last list of a watch is older than ListEvery, and records
// the list that follows.
func (t *transport) isOld(r *http.Request) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	since, known := t.listed[key(r)]
	if known && now.Sub(since) < ListEvery {
		return false
	}
	t.listed[key(r)] = now // a client's first watch follows its list
	return known
}

const (
	// askTimeout bounds the request for the version, answerMost its answer in bytes.
	askTimeout = 10 * time.Second
	answerMost = 1 << 20
	// metadataOnly keeps the answer small.
	metadataOnly = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
)

// now asks for the present resource version of the watched kind; known is false if the
// answer has none.
func (t *transport) now(r *http.Request) (now uint64, known bool, err error) {
	ctx, cancel := context.WithTimeout(r.Context(), askTimeout)
	defer cancel()
	ask := r.Clone(ctx)
	ask.URL.RawQuery = "limit=1"
	ask.Header.Set("Accept", metadataOnly)
	ask.Header.Del("Accept-Encoding")
	response, err := t.next.RoundTrip(ask)
	if err != nil {
		return 0, false, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode >= http.StatusInternalServerError {
		return 0, false, fmt.Errorf("read the resource version of %s: %s", ask.URL.Path, response.Status)
	}
	var list metav1.PartialObjectMetadataList
	if response.StatusCode != http.StatusOK || json.NewDecoder(io.LimitReader(response.Body, answerMost)).Decode(&list) != nil {
		return 0, false, nil
	}
	now, err = strconv.ParseUint(list.ResourceVersion, 10, 64)
	return now, err == nil, nil
}

// expired is the API server's answer to a compacted version.
func expired(r *http.Request, why string) *http.Response {
	status := apierrors.NewResourceExpired(why).Status()
	status.Kind, status.APIVersion = "Status", "v1"
	body, _ := json.Marshal(status) // strings and numbers never fail
	return &http.Response{
		Status: http.StatusText(http.StatusGone), StatusCode: http.StatusGone, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)), Request: r,
	}
}
