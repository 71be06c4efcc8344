package lublin

import (
	"math"
	"math/rand/v2"
)

// A day has this number of slots. The published cycle begins at the slot firstSlot.
const (
	slots     = 48
	slotTime  = 24 * 3600.0 / slots
	firstSlot = 11
)

// arrivals draws times of submission. A time between two jobs is counted in a slot of mean
// weight; it passes sooner in slots in which more jobs come.
type arrivals struct {
	weights [slots]float64 // by slot of the day; their mean is 1
	slot    int
	whole   float64 // seconds of the slots that have passed
	passed  float64 // of the weight of the present slot
}

func newArrivals() *arrivals {
	a := &arrivals{}
	sum := 0.0
	for i := firstSlot; i < firstSlot+slots; i++ {
		w := daily.between(float64(i)-0.5, float64(i)+0.5)
		a.weights[(i-1)%slots] = w
		sum += w
	}
	for i := range a.weights {
		a.weights[i] *= slots / sum
	}
	return a
}

// next returns the seconds from the beginning to the next job.
func (a *arrivals) next(random *rand.Rand) float64 {
	logarithm := between.draw(random)
	for logarithm > latest {
		logarithm = between.draw(random)
	}
	a.passed += math.Exp(logarithm) / slotTime
	for a.passed > a.weights[a.slot] {
		a.passed -= a.weights[a.slot]
		a.slot = (a.slot + 1) % slots
		a.whole += slotTime
	}
	return a.whole + slotTime*a.passed/a.weights[a.slot]
}

// gamma is a gamma distribution by its shape and its scale.
type gamma struct{ shape, scale float64 }

// draw returns a value, by the method of Marsaglia and Tsang; shape is at least 1.
func (g gamma) draw(random *rand.Rand) float64 {
	d := g.shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := random.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		if math.Log(1-random.Float64()) < 0.5*x*x+d*(1-v+math.Log(v)) {
			return d * v * g.scale
		}
	}
}

// between returns the probability of a value from low to high, by Simpson's rule.
func (g gamma) between(low, high float64) float64 {
	const steps = 64
	width := (high - low) / steps
	sum := 0.0
	for i := range steps + 1 {
		weight := 2.0
		switch {
		case i == 0 || i == steps:
			weight = 1
		case i%2 == 1:
			weight = 4
		}
		sum += weight * g.density(low+float64(i)*width)
	}
	return sum * width / 3
}

func (g gamma) density(x float64) float64 {
	if x <= 0 {
		return 0
	}
	logGamma, _ := math.Lgamma(g.shape)
	return math.Exp((g.shape-1)*math.Log(x) - x/g.scale - logGamma - g.shape*math.Log(g.scale))
}
