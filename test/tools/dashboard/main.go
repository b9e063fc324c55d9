// Command dashboard draws a dashboard of Grafana without Grafana. It sends the queries of the panels to a Prometheus,
// and draws the results as one picture. It supports the kinds of panels, the units and the options that
// config/monitoring/grafana-dashboard.json uses. It rejects others.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	p := prometheus{}
	file := flag.String("dashboard", "", "file of the dashboard")
	out := flag.String("out", "", "file of the picture, an SVG")
	flag.StringVar(&p.address, "prometheus", "", "address of the Prometheus")
	flag.DurationVar(&p.scrapeInterval, "scrape-interval", 30*time.Second, "how often it scrapes")
	flag.Func("from", "begin of what is shown (RFC 3339)", parseInto(&p.from))
	flag.Func("to", "its end (RFC 3339)", parseInto(&p.to))
	flag.Parse()
	if err := run(context.Background(), *file, *out, &p); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func parseInto(t *time.Time) func(string) error {
	return func(text string) (err error) {
		*t, err = time.Parse(time.RFC3339, text)
		return err
	}
}

func run(ctx context.Context, file, out string, p *prometheus) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var d dashboard
	if err := json.Unmarshal(content, &d); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	c := newCanvas(&d, p)
	for _, panel := range d.Panels {
		answers, err := p.answers(ctx, panel)
		if err != nil {
			return fmt.Errorf("panel %q: %w", panel.Title, err)
		}
		if panel.Type != "row" && len(answers) == 0 {
			fmt.Fprintf(os.Stderr, "panel %q has no data\n", panel.Title)
		}
		if err := c.draw(panel, answers); err != nil {
			return fmt.Errorf("panel %q: %w", panel.Title, err)
		}
	}
	picture, err := c.Bytes()
	if err != nil {
		return err
	}
	return os.WriteFile(out, picture, 0o644)
}
