package assisted

import "testing"

func TestRedactURLs(t *testing.T) {
	got := RedactURLs(`cannot get "https://u:p@img.example:8443/byapikey/eyJ/4.19?x=1": refused`)
	if want := `cannot get "https://img.example:8443/...": refused`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestMinorOf(t *testing.T) {
	for release, want := range map[string]string{"4.19.3": "4.19", "v4.19.0-okd-scos.5": "4.19", "4": "", "": ""} {
		if got := MinorOf(release); got != want {
			t.Errorf("%q: got %q, want %q", release, got, want)
		}
	}
}
