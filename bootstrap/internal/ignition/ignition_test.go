package ignition

import (
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coreos/ignition/v2/config/v3_2/types"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
)

var update = flag.Bool("update", false, "write the golden files")

func TestBuildGolden(t *testing.T) {
	for name, in := range map[string]Input{
		"nothing": {},
		"metal3": {
			NodeName: "rack1-u7",
			KubeletLabels: map[string]string{
				"metal3.io/uuid": "d7a4", "zone": "a", "node-role.kubernetes.io/infra": "", "topology.kubernetes.io/zone": "z",
			},
		},
		"everything": {
			NodeName:       "w-0",
			KubeletLabels:  map[string]string{"b": "2", "a": "1"},
			ProviderID:     `metalstack://p/"$(reboot)`,
			PreCommands:    []string{"echo before", "echo $HOSTNAME"},
			PostCommands:   []string{"echo after"},
			SentinelDir:    "/var/lib/sentinels/",
			KubeconfigPath: "/etc/kubernetes/kubeconfig",
			Overrides: []Override{
				{Config: `{"ignition":{"version":"3.0.0"},"storage":{"files":[{"path":"/etc/motd","contents":{"source":"data:,hi"}}]}}`},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := Build(in)
			g.Expect(err).NotTo(HaveOccurred())
			ours := in
			ours.Overrides = nil
			generated, err := Build(ours)
			g.Expect(err).NotTo(HaveOccurred())
			_, err = Parse([]byte(generated))
			g.Expect(err).NotTo(HaveOccurred(), "what is generated is valid")
			for range 20 {
				again, err := Build(in)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(again).To(Equal(got), "the same input gives the same bytes")
			}
			file := filepath.Join("testdata", name+".golden")
			readable := render(t, got)
			if *update {
				g.Expect(os.WriteFile(file, []byte(readable), 0o600)).To(Succeed())
			}
			want, err := os.ReadFile(file)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(readable).To(Equal(string(want)))
		})
	}
}

// render returns the files and units of an ignition as text.
func render(t *testing.T, raw string) string {
	t.Helper()
	g := NewWithT(t)
	config, err := Parse([]byte(raw))
	g.Expect(err).NotTo(HaveOccurred())
	var b strings.Builder
	for _, f := range config.Storage.Files {
		source := ptr.Deref(f.Contents.Source, "")
		if _, encoded, ok := strings.Cut(source, ";base64,"); ok {
			text, err := base64.StdEncoding.DecodeString(encoded)
			g.Expect(err).NotTo(HaveOccurred())
			source = string(text)
		}
		fmt.Fprintf(
			&b,
			"=== file %s%s%s%s\n%s",
			f.Path,
			formatField(" mode %04o", f.Mode),
			formatField(" overwrite %t", f.Overwrite),
			formatField(" of user %s", f.User.Name),
			source,
		)
	}
	for _, u := range config.Systemd.Units {
		fmt.Fprintf(
			&b,
			"=== unit %s%s%s\n%s",
			u.Name,
			formatField(" enabled %t", u.Enabled),
			formatField(" masked %t", u.Mask),
			ptr.Deref(u.Contents, ""),
		)
	}
	return b.String()
}

// formatField returns a field that the config sets; the default of a missing field depends on the host.
func formatField[T any](format string, field *T) string {
	if field == nil {
		return ""
	}
	return fmt.Sprintf(format, *field)
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
			_, err := Build(Input{Overrides: []Override{{Of: "annotation a", Config: override}}})
			NewWithT(t).Expect(err).To(MatchError(HavePrefix("annotation a: the ignition override is not valid")))
		})
	}
}

func TestOverridesAreMergedInOrder(t *testing.T) {
	motd := func(version, text string) string {
		return `{"ignition":{"version":"` + version + `"},"storage":{"files":[{"path":"/etc/motd","contents":{"source":"data:,` + text + `"}}]}}`
	}
	// Version 3.2 introduced resize.
	const partitions = `{"ignition":{"version":"3.2.0"},"storage":{"disks":[{"device":"/dev/sda","partitions":[` +
		`{"label":"data","number":5,"resize":true}]}]}}`
	for name, tc := range map[string]struct {
		overrides []string
		wanted    OmegaMatcher
	}{
		"none":            {nil, HaveField("Ignition.Version", "3.1.0")},
		"empty overrides": {[]string{"", ""}, HaveField("Ignition.Version", "3.1.0")},
		"an old version":  {[]string{motd("3.0.0", "a")}, HaveField("Ignition.Version", "3.1.0")},
		"the later one wins": {
			[]string{motd("3.1.0", "a"), motd("3.0.0", "b")},
			HaveField("Storage.Files", ContainElement(HaveField("Contents.Source", HaveValue(Equal("data:,b"))))),
		},
		"a new version": {
			[]string{partitions},
			And(
				HaveField("Ignition.Version", "3.2.0"),
				HaveField("Storage.Disks", ConsistOf(HaveField("Partitions", ConsistOf(HaveField("Resize", HaveValue(BeTrue())))))),
			),
		},
		"a new version before an old one": {
			[]string{partitions, motd("3.1.0", "a")}, And(HaveField("Ignition.Version", "3.2.0"), HaveField("Storage.Disks", HaveLen(1))),
		},
		"a new version after an old one": {
			[]string{motd("3.1.0", "a"), partitions}, And(HaveField("Ignition.Version", "3.2.0"), HaveField("Storage.Disks", HaveLen(1))),
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := Input{}
			for _, config := range tc.overrides {
				in.Overrides = append(in.Overrides, Override{Config: config})
			}
			raw, err := Build(in)
			g.Expect(err).NotTo(HaveOccurred())
			config := types.Config{}
			g.Expect(json.Unmarshal([]byte(raw), &config)).To(Succeed())
			g.Expect(config).To(tc.wanted)
		})
	}
}

func TestEmptyIsValid(t *testing.T) {
	_, err := Parse([]byte(Empty))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
}

func TestKubeletMaySet(t *testing.T) {
	for key, may := range map[string]bool{
		"zone": true, "metal3.io/uuid": true, "kubernetes.io": true, "mykubernetes.io/a": true, "kubernetes.io.example.com/a": true,
		"kubernetes.io/hostname":                   true,
		"beta.kubernetes.io/arch":                  true,
		"topology.kubernetes.io/zone":              true,
		"failure-domain.beta.kubernetes.io/region": true,
		"node.kubernetes.io/instance-type":         true,
		"node.kubernetes.io/anything":              true,
		"rack.node.kubernetes.io/a":                true,
		"kubelet.kubernetes.io/a":                  true,
		"kubernetes.io/anything":                   false,
		"k8s.io/a":                                 false,
		"node-role.kubernetes.io/infra":            false,
		"topology.kubernetes.io/rack":              false,
		"team.k8s.io/a":                            false,
	} {
		NewWithT(t).Expect(kubeletMaySet(key)).To(Equal(may), key)
	}
}

func TestResolve(t *testing.T) {
	g := NewWithT(t)
	values := map[string]string{"METADATA_UUID": "u-1", "METADATA_NAME": "n"}
	for text, want := range map[string]string{
		"plain":                         "plain",
		"$METADATA_UUID":                "u-1",
		"${METADATA_NAME}.example":      "n.example",
		`metal3://"$METADATA_UUID"`:     "metal3://u-1",
		"$METADATA_NAME-$METADATA_NAME": "n-n",
		"a$1$$-$":                       "a$1$$-$", "${a b}": "${a b}", "${METADATA_UUID": "${METADATA_UUID",
	} {
		got, err := Resolve(text, values)
		g.Expect(err).NotTo(HaveOccurred(), text)
		g.Expect(got).To(Equal(want), text)
	}
	_, err := Resolve("$METADATA_RACK", values)
	g.Expect(err).To(MatchError(ContainSubstring("$METADATA_RACK")))
	g.Expect(MetadataVariables(map[string]string{"rack-row": "7"})).To(HaveKeyWithValue("METADATA_RACK_ROW", "7"))
}
