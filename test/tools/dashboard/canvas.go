package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/go-analyze/charts"
)

// Sizes in pixels: a field of the dashboard's grid, the space between panels and within them, and the line above all.
const (
	columns               = 24
	fieldWidth, fieldHigh = 64, 34
	gap, padding, heading = 8, 12, 52
	lineHeight            = 19
)

var (
	backgroundColor = charts.ColorFromHex("#111217")
	panelColor      = charts.ColorFromHex("#181b1f")
	borderColor     = charts.ColorFromHex("#2c3036")
	gridColor       = charts.ColorFromHex("#2a2d33")
	textColor       = charts.ColorFromHex("#ccccdc")
	faintColor      = charts.ColorFromHex("#9d9fa6")
	goodColor       = charts.ColorFromHex("#73bf69")

	title  = charts.FontStyle{FontSize: 11.5, FontColor: textColor}
	text   = charts.FontStyle{FontSize: 9, FontColor: textColor}
	faint  = charts.FontStyle{FontSize: 9, FontColor: faintColor}
	colors = []charts.Color{}
)

func init() {
	for _, hex := range []string{
		"#73bf69", "#f2cc0c", "#5794f2", "#ff9830", "#f2495c", "#b877d9", "#8ab8ff", "#c8f2c2",
		"#ffee52", "#e0b400", "#37872d", "#fa6400", "#1f60c4", "#c4162a", "#8f3bb8",
	} {
		colors = append(colors, charts.ColorFromHex(hex))
	}
}

// canvas is the picture.
type canvas struct {
	*charts.Painter
	prometheus *prometheus
	theme      charts.ColorPalette
}

func newCanvas(d *dashboard, p *prometheus) *canvas {
	rows := 0
	for _, panel := range d.Panels {
		rows = max(rows, panel.GridPos.Y+panel.GridPos.H)
	}
	theme := charts.GetTheme(charts.ThemeGrafana).WithBackgroundColor(charts.ColorTransparent).WithSeriesColors(colors).
		WithAxisSplitLineColor(gridColor).WithXAxisColor(gridColor).WithYAxisColor(gridColor).WithTextColor(faintColor)
	width, height := columns*fieldWidth+gap, heading+rows*fieldHigh+gap
	c := &canvas{
		Painter:    charts.NewPainter(charts.PainterOptions{OutputFormat: charts.ChartOutputSVG, Width: width, Height: height, Theme: theme}),
		prometheus: p, theme: theme,
	}
	c.FilledRect(0, 0, width, height, backgroundColor, backgroundColor, 0)
	c.Text(d.Title, gap+4, 34, 0, charts.FontStyle{FontSize: 16, FontColor: textColor})
	shown := p.from.UTC().Format("15:04:05") + " to " + p.to.UTC().Format("15:04:05") + " UTC"
	c.Text(shown, width-gap-c.MeasureText(shown, 0, faint).Width()-4, 33, 0, faint)
	return c
}

// area is a rectangle.
type area struct{ left, top, right, bottom int }

// draw draws a panel in its place.
func (c *canvas) draw(p panel, answers []series) error {
	g := p.GridPos
	a := area{
		left: g.X*fieldWidth + gap, top: heading + g.Y*fieldHigh + gap, right: (g.X + g.W) * fieldWidth,
		bottom: heading + (g.Y+g.H)*fieldHigh,
	}
	if p.Type == "row" {
		c.Text(p.Title, a.left+4, a.bottom-5, 0, charts.FontStyle{FontSize: 13, FontColor: textColor})
		return nil
	}
	c.FilledRect(a.left, a.top, a.right, a.bottom, panelColor, borderColor, 1)
	c.Text(p.Title, a.left+padding, a.top+24, 0, title)
	a = area{left: a.left + padding, top: a.top + 36, right: a.right - padding, bottom: a.bottom - padding}
	if len(answers) == 0 {
		const none = "No data"
		c.Text(none, (a.left+a.right-c.MeasureText(none, 0, faint).Width())/2, (a.top+a.bottom)/2, 0, faint)
		return nil
	}
	if _, err := show(p.FieldConfig.Defaults.Unit, 0); err != nil {
		return err
	}
	switch p.Type {
	case "timeseries":
		return c.lines(a, p, answers)
	case "table":
		c.table(a, p, answers)
	case "stat":
		c.stat(a, p, answers)
	default:
		return fmt.Errorf("the type %q is not known here", p.Type)
	}
	return nil
}

// lines draws a chart over time with its legend below.
func (c *canvas) lines(a area, p panel, answers []series) error {
	a.bottom -= c.legend(a, answers)
	unit := func(v float64) string { shown, _ := show(p.FieldConfig.Defaults.Unit, v); return shown }
	stacked := p.FieldConfig.Defaults.Custom.Stacking.Mode == "normal"
	values := make([][]float64, len(answers))
	highest := 0.0
	sums := make([]float64, len(answers[0].values))
	for i, s := range answers {
		values[i] = make([]float64, len(s.values))
		for j, v := range s.values {
			switch {
			case !math.IsNaN(v):
				values[i][j] = v
				sums[j] += v
			case stacked: // a missing value adds nothing
			default:
				values[i][j] = charts.GetNullValue()
			}
			if !math.IsNaN(v) {
				highest = max(highest, v)
			}
		}
	}
	if stacked {
		highest = slices.Max(sums)
	}
	const parts = 4
	top := ceiling(highest, parts, p.FieldConfig.Defaults.Unit)
	option := charts.NewLineChartOptionWithData(values)
	option.Theme = c.theme
	option.Padding = charts.NewBox(0, 6, 6, 0)
	option.Symbol = charts.Symbol{Shape: charts.SymbolNone}
	option.LineStrokeWidth = 1.4
	option.Title.Show, option.Legend.Show = charts.Ptr(false), charts.Ptr(false)
	option.StackSeries = charts.Ptr(stacked)
	if opacity := p.FieldConfig.Defaults.Custom.FillOpacity; opacity > 0 {
		option.FillArea = charts.Ptr(true)
		option.FillOpacity = uint8(255 * int(opacity) / 100)
	}
	option.XAxis.Labels = c.times(len(values[0]))
	option.XAxis.LabelCount = max(3, (a.right-a.left)/130)
	option.XAxis.BoundaryGap = charts.Ptr(false)
	option.XAxis.LabelFontStyle = faint
	option.YAxis = []charts.YAxisOption{{
		Min: charts.Ptr(0.0), Max: charts.Ptr(top), RangeValuePaddingScale: charts.Ptr(0.0), LabelCount: parts + 1,
		ValueFormatter: unit, LabelFontStyle: faint,
		SplitLineShow: charts.Ptr(true), SpineLineShow: charts.Ptr(false),
	}}
	return c.Child(charts.PainterBoxOption(charts.NewBox(a.left, a.top, a.right, a.bottom))).LineChart(option)
}

// ceiling is where an axis of some parts ends that values up to the highest fit on, so that each part is a round number.
func ceiling(highest float64, parts int, unit string) float64 {
	if highest == 0 {
		return float64(parts)
	}
	base, factors := 10.0, []float64{1, 2, 5, 10}
	switch {
	case unit == "bytes":
		base, factors = 1024, []float64{1, 5, 10, 25, 50, 100, 250, 500, 1024}
	case unit == "s" && highest > 1:
		base, factors = 60, []float64{1, 5, 15, 30, 60}
	}
	part := highest * 1.05 / float64(parts)
	power := math.Pow(base, math.Floor(math.Log(part)/math.Log(base)))
	for _, factor := range factors {
		if part <= factor*power {
			return factor * power * float64(parts)
		}
	}
	return highest
}

func (c *canvas) times(n int) []string {
	labels := make([]string, n)
	for i := range labels {
		labels[i] = c.prometheus.from.Add(time.Duration(i) * c.prometheus.step()).UTC().Format("15:04:05")
	}
	return labels
}

// legend draws the names of series at the bottom of an area, and returns how high it is. What is beyond four lines is counted only.
func (c *canvas) legend(a area, answers []series) int {
	const most, mark, space = 4, 20, 14
	type entry struct{ line, x, series int }
	var entries []entry
	line, x := 0, a.left
	for i, s := range answers {
		width := mark + c.MeasureText(s.name, 0, text).Width() + space
		if x > a.left && x+width-space > a.right {
			line, x = line+1, a.left
		}
		entries = append(entries, entry{line, x, i})
		x += width
	}
	lines := min(line+1, most)
	top := a.bottom - lines*lineHeight
	for _, e := range entries {
		y := top + e.line*lineHeight + 15
		if e.line == most-1 && line >= most {
			c.Text(fmt.Sprintf("and %d more", len(answers)-e.series), a.left, y, 0, faint)
			break
		}
		c.FilledRect(e.x, y-6, e.x+14, y-3, colors[e.series%len(colors)], colors[e.series%len(colors)], 0)
		c.Text(answers[e.series].name, e.x+mark, y, 0, text)
	}
	return lines*lineHeight + 4
}

// table draws what there is now, a line for each series.
func (c *canvas) table(a area, p panel, answers []series) {
	columns := p.columns(answers[0].labels)
	rows := [][]string{p.headings(columns)}
	for _, s := range answers {
		value, _ := show(p.FieldConfig.Defaults.Unit, s.values[0])
		cells := map[string]string{"Time": c.prometheus.to.UTC().Format("15:04:05"), "Value": value}
		maps.Copy(cells, s.labels)
		row := make([]string, 0, len(columns))
		for _, name := range columns {
			row = append(row, cells[name])
		}
		rows = append(rows, row)
	}
	x := c.places(a, rows)
	const height = 25
	for i, row := range rows {
		y := a.top + i*height
		if y+height > a.bottom {
			break
		}
		if i > 0 && i < len(rows) {
			c.LineStroke([]charts.Point{{X: a.left, Y: y}, {X: a.right, Y: y}}, gridColor, 1)
		}
		for j, cell := range row {
			style := text
			if i == 0 {
				style.FontColor = charts.ColorFromHex("#6e9fff")
			}
			c.Text(cell, x[j], y+17, 0, style)
		}
	}
}

// columns returns the columns of a table as Grafana orders them: the time, the labels, the value, unless the panel
// hides or moves them.
func (p panel) columns(labels map[string]string) []string {
	columns := slices.Concat([]string{"Time"}, slices.Sorted(maps.Keys(labels)), []string{"Value"})
	for _, t := range p.Transformations {
		columns = slices.DeleteFunc(columns, func(name string) bool { return t.Options.ExcludeByName[name] })
		slices.SortStableFunc(columns, func(a, b string) int { return t.Options.IndexByName[a] - t.Options.IndexByName[b] })
	}
	return columns
}

// headings returns the names that a table shows for its columns.
func (p panel) headings(columns []string) []string {
	names := slices.Clone(columns)
	for _, t := range p.Transformations {
		for i, column := range columns {
			if name := t.Options.RenameByName[column]; name != "" {
				names[i] = name
			}
		}
	}
	return names
}

// places are where the columns of a table begin; what is left of the width is shared among them.
func (c *canvas) places(a area, rows [][]string) []int {
	widths := make([]int, len(rows[0]))
	left := a.right - a.left
	for j := range widths {
		for _, row := range rows {
			widths[j] = max(widths[j], c.MeasureText(row[j], 0, text).Width())
		}
		left -= widths[j]
	}
	x, places := a.left, make([]int, len(widths))
	for j, width := range widths {
		places[j] = x
		x += width + left/len(widths)
	}
	return places
}

// stat draws numbers, each with its name.
func (c *canvas) stat(a area, p panel, answers []series) {
	height := (a.bottom - a.top) / len(answers)
	for i, s := range answers {
		shown, _ := show(p.FieldConfig.Defaults.Unit, s.values[0])
		number := charts.FontStyle{FontSize: 30, FontColor: goodColor}
		y := a.top + i*height + height/2
		c.Text(s.name, a.left+4, y, 0, text)
		c.Text(strings.TrimSpace(shown), a.right-4-c.MeasureText(shown, 0, number).Width(), y+14, 0, number)
	}
}
