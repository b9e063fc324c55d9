package assisted

import "testing"

func TestMinorOf(t *testing.T) {
	for release, want := range map[string]string{"4.19.3": "4.19", "v4.19.0-okd-scos.5": "4.19", "4": "", "": ""} {
		if got := MinorOf(release); got != want {
			t.Errorf("%q: got %q, want %q", release, got, want)
		}
	}
}
