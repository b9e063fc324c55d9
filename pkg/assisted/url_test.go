package assisted

import (
	"encoding/base64"
	"testing"
)

func TestInfraEnvOfURL(t *testing.T) {
	token := func(claims string) string {
		return "eyJhbGciOiJFUzI1NiJ9." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
	}
	for url, want := range map[string]string{
		"http://img/byid/988939b3/4.19/x86_64/full.iso":                                                             "988939b3",
		"https://img/byapikey/" + token(`{"infra_env_id":"988939b3"}`) + "/4.19/x86_64/full.iso":                    "988939b3",
		"https://img/bytoken/" + token(`{"sub":"988939b3"}`) + "/4.19/x86_64/full.iso":                              "988939b3",
		"https://img/images/988939b3/pxe-initrd?api_key=x":                                                          "988939b3",
		"https://svc/api/assisted-install/v2/infra-envs/988939b3/downloads/files?api_key=x&file_name=discovery.ign": "988939b3",
		"http://placeholder.invalid/live.iso":                                                                       "",
		"https://img/byapikey/no-token/4.19/full.iso":                                                               "",
		"https://img/byapikey/a.%21.c/4.19/full.iso":                                                                "",
		"https://img/byapikey/a.e30.c/4.19/full.iso":                                                                "",
		"https://img/byid": "",
		"://":              "",
		"":                 "",
	} {
		if got := InfraEnvOfURL(url); got != want {
			t.Errorf("%s: got %q, not %q", url, got, want)
		}
	}
}
