package controlplane

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

// The pauses between probes grow from the first to the longest. All components of a cluster wait for
// the API server at once, and it answers each probe with all its checks while it starts: on a busy
// machine, at a probe each 50 ms, with 3,000 of them.
const (
	firstHealthPoll   = 50 * time.Millisecond
	longestHealthPoll = 500 * time.Millisecond
)

// WaitHealthy waits until the API server answers path, as "/readyz", with OK.
func WaitHealthy(ctx context.Context, config *rest.Config, path string) error {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("waiting for the API server: %w", err)
	}
	var last error
	for pause := firstHealthPoll; ; pause = min(pause+pause/2, longestHealthPoll) {
		if last = probe(ctx, client, config.Host+path); last == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the API server's %s: %w (last answer: %v)", path, context.Cause(ctx), last)
		case <-time.After(pause):
		}
	}
}

func probe(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	return nil
}
