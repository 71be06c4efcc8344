package kueue_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/policyfile/kueue"
)

const pricedFlavor = "apiVersion: kueue.x-k8s.io/v1beta1\nkind: ResourceFlavor\nmetadata:\n  name: spot\n"

// TestAnAnnotationHasTheCostOfAFlavor, and stays in what is stored, as it does where an API
// server drops fields that are not Kueue's.
func TestAnAnnotationHasTheCostOfAFlavor(t *testing.T) {
	t.Parallel()
	want := quota.Cost{"nvidia.com/gpu": 2500, "cpu": 40}
	for name, manifest := range map[string]string{
		"annotation": pricedFlavor + "  annotations: {muster.dev/cost-per-hour: 'nvidia.com/gpu=2.5, cpu=0.04', other: x}\n",
		"field":      pricedFlavor + "spec: {costPerHour: {nvidia.com/gpu: '2.5', cpu: '0.04'}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects, err := kueue.Parse([]byte(manifest))
			if err != nil {
				t.Fatal(err)
			}
			again, err := kueue.ParseOne(objects[0].Manifest)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range []kueue.Object{objects[0], again} {
				if diff := cmp.Diff(want, o.Policy.Flavors[0].Cost); diff != "" {
					t.Errorf("the cost (-want +got):\n%s", diff)
				}
			}
			if strings.Contains(string(again.Manifest), "other") {
				t.Errorf("%s has another annotation", again.Manifest)
			}
		})
	}
}

func TestWhatIsNoCostOfAFlavor(t *testing.T) {
	t.Parallel()
	for written, want := range map[string]string{
		"dear":          `line 5: ResourceFlavor "spot": metadata.annotations["muster.dev/cost-per-hour"]: "dear": want RESOURCE=PRICE`,
		"cpu=1,cpu=2":   "each resource once",
		"cpu=":          "want RESOURCE=PRICE",
		"cpu=1,":        "want RESOURCE=PRICE",
		"cpu=expensive": `want a price from 0 to 1000000`,
	} {
		t.Run(written, func(t *testing.T) {
			t.Parallel()
			_, err := kueue.Parse([]byte(pricedFlavor + "  annotations: {muster.dev/cost-per-hour: '" + written + "'}\n"))
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("refused with %v, want %s", err, want)
			}
		})
	}
	_, err := kueue.Parse([]byte(pricedFlavor + "  annotations: {muster.dev/cost-per-hour: cpu=1}\nspec: {costPerHour: {cpu: 2}}\n"))
	if err == nil || !strings.Contains(err.Error(), "stands for spec.costPerHour, which is there, too") {
		t.Errorf("both are refused with %v", err)
	}
}
