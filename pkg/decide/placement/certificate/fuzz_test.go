package certificate_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/decide/placement/certificate"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// FuzzRead reads and verifies arbitrary files. What is read verifies or does not, and is
// the same when it is written and read again.
func FuzzRead(f *testing.F) {
	fleet := secretFleet()
	set := workload.PodSet{Name: "w", Count: 9, Template: workload.Template{Requests: resource.List{"cpu": 5000}}}
	verdict := fleet.Solve(&workload.Workload{PodSets: []workload.PodSet{set}}, placement.Budget)
	d, err := certificate.Make(certificate.Draft{
		Workload: "w", PodSets: []workload.PodSet{set}, Clusters: []certificate.DraftCluster{{Name: "east", Nodes: fleet.Views()}},
		Alternatives: []certificate.DraftAlternative{{Verdicts: []*placement.Certificate{verdict.Certificate}}},
	})
	if err != nil {
		f.Fatal(err)
	}
	valid, err := json.Marshal(d)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(valid)
	f.Add([]byte(`{"certificate":{"kind":"DoesNotFit"}}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		d, err := certificate.Read(bytes.NewReader(content))
		if err != nil {
			return
		}
		verified := certificate.Verify(d)
		written, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		again, err := certificate.Read(bytes.NewReader(written))
		if err != nil {
			t.Fatalf("written, it cannot be read: %v", err)
		}
		if (certificate.Verify(again) == nil) != (verified == nil) {
			t.Fatalf("written and read, it is judged otherwise: %v", verified)
		}
	})
}
