package main

import (
	"encoding/json"
	"slices"
	"testing"
)

func TestColumnsOfTables(t *testing.T) {
	labels := map[string]string{"namespace": "lab", "cluster_name": "ha"}
	for name, c := range map[string]struct {
		panel             string
		columns, headings []string
	}{
		"as Grafana shows them": {
			`{}`, []string{"Time", "cluster_name", "namespace", "Value"}, []string{"Time", "cluster_name", "namespace", "Value"},
		},
		"hidden, moved and renamed": {
			`{"transformations": [{"options": {"excludeByName": {"Time": true}, "indexByName": {"namespace": 0, "cluster_name": 1, "Value": 2},
				"renameByName": {"cluster_name": "Cluster", "Value": "Age"}}}]}`,
			[]string{"namespace", "cluster_name", "Value"},
			[]string{"namespace", "Cluster", "Age"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var p panel
			if err := json.Unmarshal([]byte(c.panel), &p); err != nil {
				t.Fatal(err)
			}
			columns := p.columns(labels)
			if headings := p.headings(columns); !slices.Equal(columns, c.columns) || !slices.Equal(headings, c.headings) {
				t.Errorf("columns %q with headings %q, wanted %q with %q", columns, headings, c.columns, c.headings)
			}
		})
	}
}
