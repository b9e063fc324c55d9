package main

import "testing"

func TestValuesAreShownInTheirUnits(t *testing.T) {
	for _, c := range []struct {
		unit   string
		value  float64
		wanted string
	}{
		{"s", 0, "0 s"},
		{"s", 0.0254, "25.4 ms"},
		{"s", 90, "1.5 min"},
		{"s", 7200, "2 h"},
		{"bytes", 75 << 20, "75 MiB"},
		{"short", 0.02, "0.02"},
		{"short", 12, "12"},
		{"ops", 2.5, "2.5 ops/s"},
	} {
		if shown, err := show(c.unit, c.value); err != nil || shown != c.wanted {
			t.Errorf("%v in %s is shown as %q (%v), not as %q", c.value, c.unit, shown, err, c.wanted)
		}
	}
	if _, err := show("furlongs", 1); err == nil {
		t.Error("a unit that is not known is not refused")
	}
}

func TestAnAxisEndsAtARoundNumberAboveTheHighestValue(t *testing.T) {
	for _, c := range []struct {
		unit            string
		highest, wanted float64
	}{
		{"short", 0, 4}, {"short", 5, 8}, {"short", 0.05, 0.08}, {"s", 55, 60}, {"s", 70, 120}, {"s", 0.35, 0.4}, {"bytes", 80 << 20, 100 << 20},
	} {
		if top := ceiling(c.highest, 4, c.unit); top < c.wanted*0.999 || top > c.wanted*1.001 {
			t.Errorf("the axis for %v %s ends at %v, not at %v", c.highest, c.unit, top, c.wanted)
		}
	}
}
