package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/service/pause"
	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/internal/client/program"
)

// askEvery is the pause between two looks, askTimeout bounds one.
const (
	askEvery   = 250 * time.Millisecond
	askTimeout = 2 * time.Second
	// answerShown bounds what is shown of an answer that is no.
	answerShown = 1 << 10
)

func healthCommand() *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "health URL",
		Short: "Check whether a service is ready",
		Long: `Request the URL, such as http://127.0.0.1:8080/readyz, and fail unless it answers
200: a health check for containers, whose images have no shell.`,
		Args: program.Args(1, 1, "one URL"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return awaitHealth(cmd.Context(), given[0], timeout)
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "how long to wait until it is ready (default: one request)")
	program.FormerFlag(cmd.Flags(), "wait", "timeout")
	return cmd
}

func awaitHealth(ctx context.Context, url string, timeout time.Duration) error {
	if !strings.HasPrefix(url, "http://") && !strings.HasPrefix(url, "https://") {
		return exit.Usagef("health: URL %q: want http:// or https://", url)
	}
	end := time.Now().Add(timeout)
	for {
		err := askHealth(ctx, url)
		if err == nil || time.Until(end) < askEvery {
			return err
		}
		if err := pause.For(ctx, askEvery); err != nil {
			return err
		}
	}
}

func askHealth(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return exit.Usagef("health: URL %q: %w", url, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("health: %w: %w", exit.ErrUnreachable, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(response.Body, answerShown))
		return fmt.Errorf("health: %s answered %s: %s", url, response.Status, strings.TrimSpace(string(body)))
	}
	return nil
}
