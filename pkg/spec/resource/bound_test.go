package resource

import (
	"strings"
	"testing"
)

// hostile are quantities of which Kubernetes' parser, or the first sum, writes out
// all digits.
var hostile = []string{
	"1e99999999", "1E99999999", "+1e999999999", "-1e99999999", "1e-99999999", "123456789012345678901234567890e99999999",
	"1.5e-999999999", "1e100", "1e+100", strings.Repeat("9", 41), strings.Repeat("9", 400_000), "0." + strings.Repeat("0", 100) + "1",
	"1e", "e1", "", " 1", "1 ", "1\n", "0x10", "1_000", "Infinity", "NaN", "1e9e9", "--1", "٣",
}

func TestBoundedRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range hostile {
		if err := Bounded(text); err == nil || len(err.Error()) > 300 {
			t.Errorf("%.30q: error %v, want a short one", text, err)
		}
	}
}

func TestBoundedTakes(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"0", "1", "+1", "-1", "500m", "16Gi", "1.5Gi", ".5", "1.", "1e3", "1E3", "1e-3", "1e+18", "12E", "100n", strings.Repeat("9", 40)} {
		if err := Bounded(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// FuzzParse: whatever is taken for an amount is bounded, and Parse says what is
// wrong with the rest.
func FuzzParse(f *testing.F) {
	for _, text := range hostile {
		f.Add("memory", text)
	}
	f.Add("cpu", "500m")
	f.Add("nvidia.com/gpu", "0.5")
	f.Fuzz(func(t *testing.T, name, text string) {
		amount, err := Parse(Name(name), text)
		if err == nil && (amount < 0 || Bounded(text) != nil) {
			t.Fatalf("%q of %q is %d and not bounded", text, name, amount)
		}
	})
}
