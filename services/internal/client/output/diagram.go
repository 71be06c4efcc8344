package output

import (
	"errors"
	"fmt"
	"html"
	"strings"

	"muster.dev/muster/pkg/whatif/simulation"
)

// Size of a reliability diagram, and of the square in which its bars stand.
const (
	diagramWidth  = 460
	diagramHeight = 470
	diagramSide   = 360
	diagramLeft   = 60
	diagramTop    = 50
)

// ErrNoEstimates is returned for a diagram of no estimates.
var ErrNoEstimates = errors.New("no job had an estimate that came true: there is nothing to draw")

// Reliability is a reliability diagram, as SVG: a bar for each quantile of the estimates, as high as
// the part of the jobs that had started by it. Those of true quantiles end on the dashed line.
func Reliability(r simulation.Result) (string, error) {
	if r.ETA == nil || len(r.Reliability) == 0 {
		return "", ErrNoEstimates
	}
	var svg, numbers strings.Builder
	for _, c := range r.Reliability {
		fmt.Fprintf(&numbers, " p%.0f: %.1f %%.", 100*c.Quantile, 100*c.Covered)
	}
	title := fmt.Sprintf("Part of %d jobs that started by each quantile of their estimates, with policy %s", r.Estimated, html.EscapeString(Cell(r.Policy)))
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" role="img" aria-labelledby="title numbers" font-family="sans-serif" font-size="12" fill="#1b1f24">
<title id="title">%s</title>
<desc id="numbers">Started by it:%s</desc>
<rect width="100%%" height="100%%" fill="#ffffff"/>
<text x="%d" y="20" font-size="13">Started by the quantile of the estimate</text>
<text x="%[5]d" y="36" fill="#57606a">%d jobs; the dashed line is what each quantile promises</text>
`, diagramWidth, diagramHeight, title, numbers.String(), diagramLeft, r.Estimated)
	bottom := diagramTop + diagramSide
	for tenth := 0; tenth <= 10; tenth += 2 {
		y := bottom - tenth*diagramSide/10
		fmt.Fprintf(&svg, `<line x1="%d" y1="%d" x2="%d" y2="%[2]d" stroke="#d0d7de"/><text x="%[4]d" y="%[5]d" text-anchor="end">%[6]d %%</text>`+"\n", diagramLeft, y, diagramLeft+diagramSide, diagramLeft-8, y+4, 10*tenth)
	}
	width := float64(diagramSide) / float64(len(r.Reliability)+1)
	for _, c := range r.Reliability {
		x, height := diagramLeft+c.Quantile*diagramSide, c.Covered*diagramSide
		fmt.Fprintf(&svg, `<rect class="bar" x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="#0b57a4"/>`, x-0.35*width, float64(bottom)-height, 0.7*width, height)
		fmt.Fprintf(&svg, `<text x="%.1f" y="%.1f" text-anchor="middle" font-size="11" stroke="#ffffff" stroke-width="3" paint-order="stroke">%.1f</text>`, x, float64(bottom)-height-6, 100*c.Covered)
		fmt.Fprintf(&svg, `<text x="%.1f" y="%d" text-anchor="middle">p%.0f</text>`+"\n", x, bottom+18, 100*c.Quantile)
	}
	fmt.Fprintf(&svg, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="#7a4b00" stroke-width="2" stroke-dasharray="6 4"/>
<text x="%d" y="%d" text-anchor="middle">quantile of the estimated start</text>
</svg>
`, diagramLeft, bottom, diagramLeft+diagramSide, diagramTop, diagramLeft+diagramSide/2, bottom+42)
	return svg.String(), nil
}
