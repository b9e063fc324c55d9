package ignition

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

// An override cannot make the ignition invalid for a host, and cannot remove required parts by omission.
func FuzzOverrides(f *testing.F) {
	for _, override := range []string{
		Empty, `{"ignition":{"version":"3.2.0"},"storage":{"disks":[{"device":"/dev/sda","partitions":[{"label":"var","sizeMiB":0}]}]}}`,
		`{"ignition":{"version":"3.1.0","config":{"replace":{"source":"https://example.com"}}}}`,
		`{"ignition":{"version":"2.2.0"}}`,
		`{"ignition":{"version":"3.4.0"}}`,
		`{"ignition":{"version":"3.1.0"},"systemd":{"units":[{"name":"x.service","enabled":true,"contents":"[Unit]"}]}}`,
		`{"ignition":{"version":"3.1.0"},"storage":{"files":[{"path":"relative"}]}}`,
		`{`,
		`null`,
		``,
	} {
		f.Add(override, Empty)
		f.Add(Empty, override)
	}
	partition := `{"ignition":{"version":"3.1.0"},` +
		`"storage":{"disks":[{"device":"/dev/sda","partitions":[{"number":%d,"label":"var","sizeMiB":9,"startMiB":0}]}]}}`
	f.Add(fmt.Sprintf(partition, 1), fmt.Sprintf(partition, 2))
	f.Fuzz(func(t *testing.T, first, last string) {
		g := NewWithT(t)
		in := Input{
			NodeName:    "w0",
			ProviderID:  "metal3://a/b/c",
			PreCommands: []string{"true"},
			Overrides:   []Override{{Of: "first", Config: first}, {Of: "last", Config: last}},
		}
		built, err := Build(in)
		if err != nil {
			return
		}
		g.Expect(Build(in)).To(Equal(built), "the same input gives the same bytes")
		config, err := Parse([]byte(built))
		g.Expect(err).NotTo(HaveOccurred())
		plain, err := Build(Input{NodeName: in.NodeName, ProviderID: in.ProviderID, PreCommands: in.PreCommands})
		g.Expect(err).NotTo(HaveOccurred())
		wanted, err := Parse([]byte(plain))
		g.Expect(err).NotTo(HaveOccurred())
		units, files := map[string]bool{}, map[string]bool{}
		for _, unit := range config.Systemd.Units {
			units[unit.Name] = true
		}
		for _, file := range config.Storage.Files {
			files[file.Path] = true
		}
		for _, unit := range wanted.Systemd.Units {
			g.Expect(units).To(HaveKey(unit.Name))
		}
		for _, file := range wanted.Storage.Files {
			g.Expect(files).To(HaveKey(file.Path))
		}
	})
}

// Resolve changes only known variables and quotes, for all of the variables are.
func FuzzResolve(f *testing.F) {
	f.Add("$METADATA_NAME-${METADATA_UUID}", "name: $METADATA_UUID")
	f.Add(`a="$METADATA_X_Y"`, "x-y: [1, 2]")
	f.Add("$1 $$ ${ $}", "a: &a [*a]")
	f.Add("${METADATA_A}", "a: {b: c}\nA: d")
	f.Fuzz(func(t *testing.T, text, metadata string) {
		g := NewWithT(t)
		entries := map[string]string{}
		if err := yaml.Unmarshal([]byte(metadata), &entries); err != nil {
			return
		}
		values := MetadataVariables(entries)
		resolved, err := Resolve(text, values)
		unknown := slices.ContainsFunc(Variables(text), func(name string) bool { _, known := values[name]; return !known })
		g.Expect(err != nil).To(Equal(unknown), "%v", err)
		if err != nil {
			return
		}
		if len(Variables(text)) == 0 {
			g.Expect(resolved).To(Equal(strings.ReplaceAll(text, `"`, "")))
		}
		for _, name := range slices.Sorted(maps.Keys(values)) {
			g.Expect(name).To(HavePrefix("METADATA_"))
		}
	})
}
