package ignition

import (
	"encoding/base64"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/utils/ptr"
)

var update = flag.Bool("update", false, "write the golden files")

func TestBuildGolden(t *testing.T) {
	for name, in := range map[string]Input{
		"nothing": {},
		"metal3": {
			NodeName:      "rack1-u7",
			KubeletLabels: map[string]string{"metal3.io/uuid": "d7a4", "zone": "a", "node-role.kubernetes.io/infra": "", "topology.kubernetes.io/zone": "z"},
		},
		"everything": {
			NodeName:       "w-0",
			KubeletLabels:  map[string]string{"b": "2", "a": "1"},
			ProviderID:     `metalstack://p/"$(reboot)`,
			PreCommands:    []string{"echo before", "echo $HOSTNAME"},
			PostCommands:   []string{"echo after"},
			SentinelDir:    "/var/lib/sentinels/",
			KubeconfigPath: "/etc/kubernetes/kubeconfig",
			Override:       `{"ignition":{"version":"3.0.0"},"storage":{"files":[{"path":"/etc/motd","contents":{"source":"data:,hi"}}]}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Build(in)
			if err != nil {
				t.Fatal(err)
			}
			ours := in
			ours.Override = ""
			generated, err := Build(ours)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Parse([]byte(generated)); err != nil {
				t.Errorf("what is generated is not valid: %s", err)
			}
			for range 20 {
				if again, _ := Build(in); again != got {
					t.Fatal("the same input gives other bytes")
				}
			}
			file := filepath.Join("testdata", name+".golden")
			readable := render(t, got)
			if *update {
				if err := os.WriteFile(file, []byte(readable), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if readable != string(want) {
				t.Errorf("got:\n%s\nwant:\n%s", readable, want)
			}
		})
	}
}

// render shows what the host gets.
func render(t *testing.T, raw string) string {
	t.Helper()
	config, err := Parse([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range config.Storage.Files {
		source := ptr.Deref(f.Contents.Source, "")
		if _, encoded, ok := strings.Cut(source, ";base64,"); ok {
			text, err := base64.StdEncoding.DecodeString(encoded)
			if err != nil {
				t.Fatal(err)
			}
			source = string(text)
		}
		b.WriteString("=== file " + f.Path + "\n" + source)
	}
	for _, u := range config.Systemd.Units {
		b.WriteString("=== unit " + u.Name + "\n" + ptr.Deref(u.Contents, ""))
	}
	return b.String()
}

func TestBuildRefusesInvalidOverrides(t *testing.T) {
	for name, override := range map[string]string{
		"not JSON":          `{`,
		"no version":        `{}`,
		"a newer version":   `{"ignition":{"version":"3.4.0"}}`,
		"a relative path":   `{"ignition":{"version":"3.1.0"},"storage":{"files":[{"path":"etc/motd"}]}}`,
		"not a JSON object": `[]`,
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Build(Input{Override: override}); err == nil || !strings.Contains(err.Error(), "override") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestEmptyIsValid(t *testing.T) {
	if _, err := Parse([]byte(Empty)); err != nil {
		t.Error(err)
	}
}

func TestResolve(t *testing.T) {
	values := map[string]string{"METADATA_UUID": "u-1", "METADATA_NAME": "n"}
	for text, want := range map[string]string{
		"plain":                         "plain",
		"$METADATA_UUID":                "u-1",
		"${METADATA_NAME}.example":      "n.example",
		`metal3://"$METADATA_UUID"`:     "metal3://u-1",
		"$METADATA_NAME-$METADATA_NAME": "n-n",
	} {
		if got, err := Resolve(text, values); err != nil || got != want {
			t.Errorf("%s: got %q, %v", text, got, err)
		}
	}
	if _, err := Resolve("$METADATA_RACK", values); err == nil || !strings.Contains(err.Error(), "$METADATA_RACK") {
		t.Errorf("got %v", err)
	}
	if got := MetadataVariables(map[string]string{"rack-row": "7"})["METADATA_RACK_ROW"]; got != "7" {
		t.Errorf("got %q", got)
	}
}
