package policywebhook_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"muster.dev/muster/deploy/policy"
	"muster.dev/muster/services/intake/internal/policywebhook"
)

// TestAReviewThatDoesNotEndIsCut: a caller that announces a body and does not send it gets
// an error when its time is over, and its slot is free for the next review.
func TestAReviewThatDoesNotEndIsCut(t *testing.T) {
	t.Parallel()
	limits := policywebhook.DefaultLimits()
	limits.Time, limits.Reviews, limits.PerAddress = 100*time.Millisecond, 1, 1
	h := newHandler(t, limits)
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(conn, "POST %shold HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n{", policy.Path); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("a review that does not end is answered with %v", err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusBadRequest {
		t.Errorf("a review that does not end is answered with %s, want %d", answer.Status, http.StatusBadRequest)
	}
	if next := post(h, policy.Path+"hold", review(rayCluster)); next.Code != http.StatusOK {
		t.Errorf("the next review is answered with %d %s", next.Code, next.Body)
	}
}
