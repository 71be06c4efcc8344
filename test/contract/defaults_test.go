package contract

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

// The defaults that the pages list are those of the code.
func TestPagesHaveTheDefaults(t *testing.T) {
	t.Parallel()
	rules := workload.Rules{}.WithDefaults()
	for page, rows := range map[string]map[string]string{
		"docs/lifecycle.md": {
			"readyDeadline": short(rules.ReadyDeadline), "onPodLoss": quote(rules.OnPodLoss), "start": quote(rules.Start),
			"checkpointGrace": quote(time.Duration(rules.CheckpointGrace)), "requeues": quote(*rules.Requeues),
			"backoffFirst": short(rules.BackoffFirst) + ", " + short(rules.BackoffMost), "forceAfter": short(rules.ForceAfter),
			"keepFinished": short(rules.KeepFinished), "placement": quote(rules.Placement),
		},
		"docs/queues.md": {
			"checkpointGrace": short(workload.DefaultMostGrace), "readyDeadline": short(workload.DefaultMostReadyDeadline),
			"forceAfter": short(workload.DefaultMostForceAfter), "retries": quote(workload.DefaultMostRetries), "pause": short(workload.DefaultMostPause),
			"successTTL": short(workload.DefaultMostSuccessTTL), "priority": quote(workload.DefaultMostPriority) + " for numbers",
		},
	} {
		content, err := os.ReadFile("../../" + page)
		if err != nil {
			t.Fatal(err)
		}
		for field, want := range rows {
			t.Run(page+" "+field, func(t *testing.T) {
				found := false
				for line := range strings.Lines(string(content)) {
					found = found || strings.HasPrefix(line, "| `"+field+"`") && strings.Contains(line, "| "+want)
				}
				if !found {
					t.Errorf("%s has no row of %s with the default %s", page, field, want)
				}
			})
		}
	}
}

func quote(value any) string { return "`" + fmt.Sprint(value) + "`" }

// short writes a duration as the pages do, without what is zero.
func short[D ~int64](d D) string {
	text := time.Duration(d).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return quote(text)
}
