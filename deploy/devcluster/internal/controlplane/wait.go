package controlplane

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

const healthPollInterval = 50 * time.Millisecond

// WaitHealthy waits until the API server answers path, as "/readyz", with OK.
func WaitHealthy(ctx context.Context, config *rest.Config, path string) error {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("waiting for the API server: %w", err)
	}
	tick := time.NewTicker(healthPollInterval)
	defer tick.Stop()
	var last error
	for {
		if last = probe(ctx, client, config.Host+path); last == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the API server's %s: %w (last answer: %v)", path, context.Cause(ctx), last)
		case <-tick.C:
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
