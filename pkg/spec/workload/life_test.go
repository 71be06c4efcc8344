package workload

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestBackoffDoublesUpToItsMost(t *testing.T) {
	t.Parallel()
	rules := Rules{BackoffFirst: Duration(10 * time.Second), BackoffMost: Duration(time.Minute)}
	for n, want := range map[int]time.Duration{
		1: 10 * time.Second, 2: 20 * time.Second, 3: 40 * time.Second, 4: time.Minute, 5: time.Minute, 1 << 40: time.Minute,
	} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			if got := rules.Backoff(n); got != want {
				t.Errorf("the wait before requeue %d is %s, want %s", n, got, want)
			}
		})
	}
}

func TestAWorkloadsLifeGoesBeforeItsQueues(t *testing.T) {
	t.Parallel()
	queue := Rules{Life: Life{ReadyDeadline: Duration(time.Minute), OnPodLoss: EvictOnLoss, Start: StartWhole, CheckpointGrace: Duration(time.Second)}}
	if got := queue.For(Life{}); got.Life != queue.Life || *got.Requeues != DefaultRequeues {
		t.Errorf("without a wish of its own: %+v", got)
	}
	asked := Life{ReadyDeadline: Duration(time.Hour), OnPodLoss: HealOnLoss, Start: StartEarly, CheckpointGrace: Duration(time.Minute), CheckpointInterval: 60, MaxRunTime: Duration(time.Hour)}
	if got := queue.For(asked).Life; got != asked {
		t.Errorf("with wishes: %+v, want %+v", got, asked)
	}
}

func TestRulesAreReadAndChecked(t *testing.T) {
	t.Parallel()
	var rules Rules
	if err := json.Unmarshal([]byte(`{"readyDeadline": "90s", "requeues": 0, "placement": "trusted"}`), &rules); err != nil {
		t.Fatal(err)
	}
	if err := rules.Validate(); err != nil || time.Duration(rules.ReadyDeadline) != 90*time.Second || *rules.WithDefaults().Requeues != 0 {
		t.Errorf("read %+v, %v", rules, err)
	}
	for _, bad := range []string{`{"readyDeadline": 5}`, `{"start": "late"}`, `{"onPodLoss": "cry"}`, `{"start": 1}`, `{"start": ""}`, `{"readyDeadline": "soon"}`, `{"readyDeadline": "-1s"}`, `{"keepFinished": "1000000h"}`} {
		if err := json.Unmarshal([]byte(bad), &rules); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
	negative := -1
	bad := Rules{Placement: "anywhere", Requeues: &negative, BackoffFirst: Duration(time.Hour), BackoffMost: Duration(time.Minute)}
	err := bad.Validate()
	for _, field := range []string{"placement", "requeues", "backoffMost"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("the error does not name %s: %v", field, err)
		}
	}
}
