package appwrapper_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/spec/workload"
)

// The annotations that ask for fault tolerance act; those that do nothing, and
// values that mean nothing, are named.
func TestFaultToleranceAnnotations(t *testing.T) {
	t.Parallel()
	retries := 2
	for name, c := range map[string]struct {
		annotations string
		want        *workload.Tolerance
		warnings    []string
	}{
		"all that act": {
			"retryLimit: '2', AW/retryPausePeriodDuration: 5s, AW/failureGracePeriodDuration: 20s, AW/forcefulDeletionGracePeriodDuration: 3m, AW/terminalExitCodes: '3,10', AW/retryableExitCodes: '20, 30'",
			&workload.Tolerance{
				Retries: &retries, RetryFailed: true, Pause: seconds(5), LossDeadline: seconds(20), ForceAfter: seconds(180),
				TerminalExitCodes: []int32{3, 10}, RetryableExitCodes: []int32{20, 30},
			}, nil,
		},
		"what does nothing": {"deletionOnFailureGracePeriodDuration: 1m, AW/other: x", nil,
			[]string{"deletionOnFailureGracePeriodDuration]: does nothing", "other]: does nothing"}},
		"a stay after success": {"successTTLDuration: 168h", &workload.Tolerance{SuccessTTL: workload.Duration(168 * time.Hour)}, nil},
		"too long a stay":      {"successTTLDuration: 169h", nil, []string{`successTTLDuration]: is "169h" and does nothing; want a duration from 0s to 168h`}},
		"what means nothing": {"retryLimit: often, AW/retryPausePeriodDuration: 25h, AW/terminalExitCodes: 'one,0,7'", &workload.Tolerance{TerminalExitCodes: []int32{7}},
			[]string{`retryLimit]: is "often" and does nothing; want a whole number`, `retryPausePeriodDuration]: is "25h" and does nothing; want a duration`, `"one" is no exit code`, `"0" is no exit code`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, err := read(t, "apiVersion: workload.codeflare.dev/v1beta2\nkind: AppWrapper\nmetadata:\n  name: aw\n  annotations: {"+
				strings.ReplaceAll("AW/"+c.annotations, "AW/", "workload.codeflare.dev.appwrapper/")+"}\n"+
				"spec: {components: [{template: {apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}}]}\n")
			if err != nil {
				t.Fatal(err)
			}
			if stays := w.SuccessTTL != nil && *w.SuccessTTL == 168*time.Hour; stays != strings.Contains(c.annotations, "168h") {
				t.Errorf("it stays for %v after success", w.SuccessTTL)
			}
			if diff := cmp.Diff(c.want, w.Life.Tolerance); diff != "" {
				t.Errorf("tolerance (-want +got):\n%s", diff)
			}
			if len(w.Warnings) != len(c.warnings) {
				t.Errorf("warnings are %q, want %q", w.Warnings, c.warnings)
			}
			for _, want := range c.warnings {
				if !slices.ContainsFunc(w.Warnings, func(got string) bool { return strings.Contains(got, want) }) {
					t.Errorf("warnings are %q, want %q", w.Warnings, want)
				}
			}
		})
	}
}

func seconds(n int) workload.Duration { return workload.Duration(time.Duration(n) * time.Second) }

// Every accepted field acts or earns a warning.
func TestFieldsWithoutEffectAreNamed(t *testing.T) {
	t.Parallel()
	manifest := v1beta1(item(fmt.Sprintf(rayCluster, "a"), "\n      minavailable: 2\n      allocated: 1\n      priority: 3\n      priorityslope: 0.5")) +
		"\n    Items: []\n    metadata: {}\n  service: {spec: {a: 1}}\n  selector: {matchLabels: {a: b}}\n  priorityslope: 1.5\n  schedulingSpec:\n    minAvailable: 2\n" +
		"    nodeSelector: {a: b}\n    requeuing: {timeInSeconds: 30, growthType: linear, maxTimeInSeconds: 60, initialTimeInSeconds: 7, numRequeuings: 1, maxNumRequeuings: 4}\n    dispatchDuration: {limit: 120, expected: 60}\n"
	w, err := read(t, manifest)
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{
		"GenericItems[0].minavailable", "GenericItems[0].allocated", "GenericItems[0].priority", "spec.selector", "GenericItems[0].priorityslope", "spec.service", "spec.priorityslope",
		"schedulingSpec.nodeSelector", "requeuing.growthType", "requeuing.maxTimeInSeconds", "requeuing.initialTimeInSeconds", "requeuing.numRequeuings",
		"dispatchDuration.expected",
	} {
		if !slices.ContainsFunc(w.Warnings, func(s string) bool { return strings.Contains(s, field+": does nothing") }) {
			t.Errorf("no warning of %s in %q", field, w.Warnings)
		}
	}
	if len(w.Warnings) != 13 {
		t.Errorf("%d warnings: %q", len(w.Warnings), w.Warnings)
	}
	if w.Life.ReadyDeadline != workload.Duration(30*time.Second) || w.Life.MaxRunTime != workload.Duration(2*time.Minute) {
		t.Errorf("life is %+v", w.Life)
	}
	if w.Life.Tolerance == nil || *w.Life.Tolerance.Retries != 4 {
		t.Errorf("tolerance is %+v", w.Life.Tolerance)
	}
}

// In MCAD 0 is no limit; a gang that is queued again without end is what a queue's rule is for.
func TestNoLimitOfRequeuingsIsTheQueuesRule(t *testing.T) {
	t.Parallel()
	w, err := read(t, v1beta1(item(fmt.Sprintf(rayCluster, "a"), ""))+"\n  schedulingSpec: {minAvailable: 2, requeuing: {timeInSeconds: 30, maxNumRequeuings: 0}}\n")
	if err != nil {
		t.Fatal(err)
	}
	if w.Life.Tolerance != nil || w.Life.ReadyDeadline != workload.Duration(30*time.Second) {
		t.Errorf("life is %+v, want the time and no number of requeues", w.Life)
	}
}
