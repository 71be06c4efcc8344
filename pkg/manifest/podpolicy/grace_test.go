package podpolicy_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/manifest/podpolicy"
)

func TestPodsMayNotTakeLongerToEndThanTheQueueAllows(t *testing.T) {
	t.Parallel()
	for manifest, want := range map[string]string{
		`{}`: "",
		`{"spec":{"headGroupSpec":{"template":{"spec":{"containers":[],"terminationGracePeriodSeconds":600}}}}}`: "",
		`{"spec":{"headGroupSpec":{"template":{"spec":{"containers":[],"terminationGracePeriodSeconds":601}}}}}`: "spec.headGroupSpec.template.spec.terminationGracePeriodSeconds: is 601, but the queue allows its pods 600 s at most",
		`{"items":[{"spec":{"template":{"spec":{"terminationGracePeriodSeconds":31536000}}}}]}`:                  "items[0].spec.template.spec.terminationGracePeriodSeconds: is 31536000",
		`{"livenessProbe":{"terminationGracePeriodSeconds":1e9}}`:                                                "is 1e+09",
		`{"terminationGracePeriodSeconds":-1}`:                                                                   "is -1",
		`{"terminationGracePeriodSeconds":"x"}`:                                                                  "is x",
		`{"terminationGracePeriodSeconds":null}`:                                                                 "",
		`{`:                                                                                                      "cannot be read",
	} {
		t.Run(manifest, func(t *testing.T) {
			err := podpolicy.CheckGrace(10*time.Minute, json.RawMessage(manifest))
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s: got %v, want %q", manifest, err, want)
			}
		})
	}
}
