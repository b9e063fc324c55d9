package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// points are how many of a series are drawn.
const points = 160

// dashboard is the part of the model of Grafana that is read.
type dashboard struct {
	Title  string
	Panels []panel
}

type panel struct {
	Type, Title string
	GridPos     struct{ X, Y, W, H int }
	FieldConfig struct {
		Defaults struct {
			Unit   string
			Custom struct {
				FillOpacity uint8
				Stacking    struct{ Mode string }
			}
		}
	}
	Targets         []target
	Transformations []transformation
}

// transformation is the change of the columns of a table: Grafana's "organize".
type transformation struct {
	Options struct {
		ExcludeByName map[string]bool
		RenameByName  map[string]string
		IndexByName   map[string]int
	}
}

type target struct {
	Expr, LegendFormat string
	Instant            bool
}

// prometheus is the address of Prometheus and the time range of the queries.
type prometheus struct {
	address        string
	from, to       time.Time
	scrapeInterval time.Duration
}

// series is a line of a chart; where there is no value it is NaN. An instant query has one value.
type series struct {
	name   string
	labels map[string]string
	values []float64
}

// step is the time between two points.
func (p *prometheus) step() time.Duration {
	return max(p.to.Sub(p.from)/points, time.Second).Truncate(time.Second)
}

// expand puts in what Grafana would; all namespaces and clusters are selected.
func (p *prometheus) expand(query string) string {
	// The interval of rates: https://grafana.com/docs/grafana/latest/datasources/prometheus/template-variables/
	interval := max(p.step()+p.scrapeInterval, 4*p.scrapeInterval)
	return strings.NewReplacer("$namespace", ".+", "$cluster", ".+", "$__rate_interval",
		fmt.Sprintf("%.0fs", interval.Seconds())).Replace(query)
}

// answers are what the queries of a panel bring; series without any value are left out.
func (p *prometheus) answers(ctx context.Context, of panel) ([]series, error) {
	var all []series
	for _, t := range of.Targets {
		found, err := p.query(ctx, t)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func (p *prometheus) query(ctx context.Context, t target) ([]series, error) {
	query := url.Values{"query": {p.expand(t.Expr)}}
	path := "/api/v1/query"
	if t.Instant {
		query.Set("time", p.to.Format(time.RFC3339))
	} else {
		path = "/api/v1/query_range"
		query.Set("start", p.from.Format(time.RFC3339))
		query.Set("end", p.to.Format(time.RFC3339))
		query.Set("step", strconv.FormatFloat(p.step().Seconds(), 'f', -1, 64))
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.address+path+"?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var answer struct {
		Error string
		Data  struct {
			Result []struct {
				Metric map[string]string
				Value  *value
				Values []value
			}
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return nil, err
	}
	if answer.Error != "" {
		return nil, fmt.Errorf("%s: %s", t.Expr, answer.Error)
	}
	var found []series
	for _, r := range answer.Data.Result {
		if r.Value != nil {
			r.Values = []value{*r.Value}
		}
		s := series{name: legend(t.LegendFormat, r.Metric), labels: maps.Clone(r.Metric), values: p.place(r.Values, t.Instant)}
		if s.hasValues() {
			found = append(found, s)
		}
	}
	return found, nil
}

// place puts values where they belong in time.
func (p *prometheus) place(values []value, instant bool) []float64 {
	if instant {
		return []float64{values[0].number}
	}
	placed := make([]float64, int(p.to.Sub(p.from)/p.step())+1)
	for i := range placed {
		placed[i] = math.NaN()
	}
	for _, v := range values {
		if i := int(math.Round((v.time - float64(p.from.Unix())) / p.step().Seconds())); i >= 0 && i < len(placed) {
			placed[i] = v.number
		}
	}
	return placed
}

func (s series) hasValues() bool {
	for _, v := range s.values {
		if !math.IsNaN(v) {
			return true
		}
	}
	return false
}

// value is one of Prometheus': a time in seconds, and a number as text.
type value struct{ time, number float64 }

func (v *value) UnmarshalJSON(content []byte) error {
	var text string
	if err := json.Unmarshal(content, &[]any{&v.time, &text}); err != nil {
		return err
	}
	var err error
	v.number, err = strconv.ParseFloat(text, 64)
	return err
}

var inLegend = regexp.MustCompile(`{{([^}]*)}}`)

// legend names a series.
func legend(format string, labels map[string]string) string {
	return inLegend.ReplaceAllStringFunc(format, func(found string) string { return labels[strings.Trim(found, "{}")] })
}
