package page

import (
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/services/internal/client/output"
)

// Size of a chart in units of its own: the browser scales it.
const (
	chartWidth  = 600
	chartHeight = 120
)

// Chart is a few lines over time.
type Chart struct {
	Title, Label  string
	Top, From, To string // labels of the axes
	Lines         []ChartLine
	Width, Height int
}

// ChartLine is a line of a chart: its points as SVG takes them.
type ChartLine struct {
	Name, Last, Points string
	Number             int // from 0, for the colour
}

// series is a line before it is drawn.
type series struct {
	name   string
	values []float64
}

// draw makes a chart of lines with as many values each; show writes a value.
func draw(title string, from, to time.Time, show func(float64) string, all ...series) Chart {
	top := 0.0
	for _, s := range all {
		for _, v := range s.values {
			top = math.Max(top, v)
		}
	}
	top = round(top)
	c := Chart{
		Title: title, Top: show(top), From: from.UTC().Format("01-02 15:04"), To: to.UTC().Format("01-02 15:04 UTC"),
		Width: chartWidth, Height: chartHeight,
	}
	var parts []string
	for i, s := range all {
		line := ChartLine{Name: s.name, Number: i}
		var points strings.Builder
		most := 0.0
		for k, v := range s.values {
			x := float64(chartWidth) * float64(k) / math.Max(1, float64(len(s.values)-1))
			fmt.Fprintf(&points, "%.1f,%.1f ", x, chartHeight*(1-v/top))
			most = math.Max(most, v)
			line.Last = show(v)
		}
		line.Points = strings.TrimSpace(points.String())
		c.Lines = append(c.Lines, line)
		parts = append(parts, fmt.Sprintf("%s: now %s, at most %s", s.name, line.Last, show(most)))
	}
	c.Label = title + ". " + strings.Join(parts, "; ") + "."
	return c
}

// round returns a round number that is at least v: 1, 2 or 5 times a power of ten.
func round(v float64) float64 {
	if v <= 1 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, factor := range []float64{1, 2, 5} {
		if factor*power >= v {
			return factor * power
		}
	}
	return 10 * power
}

// Window is a span of time that charts may show.
type Window struct {
	Name, Link   string
	Here         bool
	Length, Step time.Duration
}

// windows are those that may be chosen; the first is shown unless another is.
func windows() []Window {
	return []Window{
		{Name: "1h", Length: time.Hour, Step: time.Minute}, {Name: "6h", Length: 6 * time.Hour, Step: 5 * time.Minute},
		{Name: "24h", Length: 24 * time.Hour, Step: 20 * time.Minute}, {Name: "7d", Length: 7*24*time.Hour - 2*time.Hour, Step: 2 * time.Hour},
	}
}

// WindowNamed returns the window of a name; that of "" is the first.
func WindowNamed(name string) (Window, bool) {
	for i, w := range windows() {
		if w.Name == name || name == "" && i == 0 {
			return w, true
		}
	}
	return Window{}, false
}

// Activity is the charts of what happened over time.
type Activity struct {
	// Missing is why there are none; empty where there are.
	Missing string
	Windows []Window
	Charts  []Chart
}

// NoActivity is in the place of charts that are not there.
func NoActivity(why string) Activity { return Activity{Missing: why} }

// MakeActivity makes charts; path and values are the address of their page.
func MakeActivity(a query.ActivityAnswer, path string, values url.Values, shown Window) Activity {
	var activity Activity
	for _, w := range windows() {
		values.Set("window", w.Name)
		w.Link, w.Here = path+"?"+values.Encode(), w.Name == shown.Name
		activity.Windows = append(activity.Windows, w)
	}
	n := len(a.Steps)
	if n == 0 {
		activity.Missing = "Nothing happened."
		return activity
	}
	var waiting, submitted, admitted, evicted, ended, p50, p90 []float64
	minutes := math.Max(1, float64(a.StepSeconds)) / 60
	for _, s := range a.Steps {
		waiting = append(waiting, float64(s.Waiting))
		submitted, admitted = append(submitted, float64(s.Submitted)/minutes), append(admitted, float64(s.Admitted)/minutes)
		evicted, ended = append(evicted, float64(s.Evicted)/minutes), append(ended, float64(s.Ended)/minutes)
		p50, p90 = append(p50, s.WaitP50), append(p90, s.WaitP90)
	}
	from, to := a.Steps[0].At, a.Steps[n-1].At.Add(time.Duration(a.StepSeconds)*time.Second)
	count := func(v float64) string { return strconv.FormatFloat(v, 'f', 0, 64) }
	rate := func(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }
	span := func(v float64) string {
		return output.Latency(time.Duration(v * float64(time.Second)).Round(time.Second))
	}
	activity.Charts = []Chart{
		draw("Waiting workloads", from, to, count, series{"waiting", waiting}),
		draw("Workloads a minute", from, to, rate, series{"submitted", submitted}, series{"admitted", admitted}, series{"ended", ended}, series{"evicted", evicted}),
		draw("Waits of those admitted", from, to, span, series{"median", p50}, series{"90th percentile", p90}),
	}
	return activity
}
