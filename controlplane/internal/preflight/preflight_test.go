package preflight

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
)

const (
	api      = "api.c1.lab.example"
	app      = "console-openshift-console.apps.c1.lab.example"
	wildcard = "validatenowildcarddns.c1.lab.example"
)

func controlPlane(name, cluster string, apiVIPs, ingressVIPs []string) *controlplanev1.OpenshiftAssistedControlPlane {
	cp := &controlplanev1.OpenshiftAssistedControlPlane{ObjectMeta: metav1.ObjectMeta{
		Namespace: "lab", Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: cluster},
	}}
	cp.Spec.Config.BaseDomain, cp.Spec.Config.APIVIPs, cp.Spec.Config.IngressVIPs = "lab.example", apiVIPs, ingressVIPs
	return cp
}

// valid returns a cluster without problems.
func valid() *Inputs {
	cp := controlPlane("c1", "c1", []string{"192.168.111.5"}, []string{"192.168.111.6"})
	return &Inputs{
		Facts:  &facts.Facts{ControlPlane: cp},
		Names:  map[string]facts.Name{api: resolvesTo("192.168.111.5"), app: resolvesTo("192.168.111.6"), wildcard: {Answered: true}},
		Others: []*controlplanev1.OpenshiftAssistedControlPlane{cp},
	}
}

func resolvesTo(addresses ...string) facts.Name {
	found := facts.Name{Answered: true}
	for _, address := range addresses {
		found.Addresses = append(found.Addresses, netip.MustParseAddr(address))
	}
	return found
}

func TestNoWarnings(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Names(valid().Facts)).To(ConsistOf(api, app, wildcard))
	g.Expect(Check(valid())).To(Equal(Result{}))
}

func TestNames(t *testing.T) {
	for name, tc := range map[string]struct {
		change            func(*Inputs)
		warnings, unknown []string
	}{
		"API resolves to another address": {
			func(in *Inputs) { in.Names[api] = resolvesTo("10.0.0.1", "192.168.111.5") },
			[]string{"api.c1.lab.example resolves to 10.0.0.1, not to config.apiVIPs (192.168.111.5)"},
			nil,
		},
		"applications resolve to the API": {
			func(in *Inputs) { in.Names[app] = resolvesTo("192.168.111.5") },
			[]string{"*.apps.c1.lab.example resolves to 192.168.111.5, not to config.ingressVIPs (192.168.111.6)"},
			nil,
		},
		"no record": {
			func(in *Inputs) { in.Names[api] = resolvesTo() },
			[]string{"api.c1.lab.example does not exist in the hub's DNS: create a record for 192.168.111.5 (config.apiVIPs)"},
			nil,
		},
		"one of two address families": {
			func(in *Inputs) {
				in.ControlPlane.Spec.Config.APIVIPs = []string{"192.168.111.5", "fd00:0::5"}
				in.Names[api] = resolvesTo("fd00::5")
			}, nil, nil,
		},
		"wildcard record": {
			func(in *Inputs) { in.Names[wildcard] = resolvesTo("192.168.111.6") },
			[]string{"all names below c1.lab.example resolve to 192.168.111.6. OpenShift cannot be installed with a wildcard record " +
				"*.c1.lab.example: " +
				"replace it by records of api and *.apps"},
			nil,
		},
		"being resolved": {func(in *Inputs) { delete(in.Names, app) }, nil, []string{"*.apps.c1.lab.example is being resolved"}},
		"DNS failure": {
			func(in *Inputs) { in.Names[api] = facts.Name{Answered: true, Failure: "DNS does not answer"} }, nil,
			[]string{"api.c1.lab.example cannot be resolved on the hub: DNS does not answer"},
		},
		"single node": {func(in *Inputs) { single(in); in.Names[api] = resolvesTo("10.0.0.1") }, nil, nil},
		"single node without record": {
			func(in *Inputs) { single(in); in.Names[api] = resolvesTo() },
			[]string{"api.c1.lab.example does not exist in the hub's DNS: create a record"},
			nil,
		},
		"another cluster name": {
			func(in *Inputs) {
				in.ControlPlane.Spec.Config.ClusterName = "other"
				in.Names = map[string]facts.Name{
					"api.other.lab.example":                            resolvesTo("192.168.111.5"),
					"console-openshift-console.apps.other.lab.example": resolvesTo("192.168.111.6"),
				}
			}, nil, []string{"the check for a wildcard record *.other.lab.example is not possible yet"},
		},
	} {
		in := valid()
		tc.change(in)
		early := len(in.Names) < len(Names(in.Facts))
		NewWithT(t).Expect(Check(in)).To(Equal(Result{Warnings: tc.warnings, Unknown: tc.unknown, Early: early}), name)
	}
}

func single(in *Inputs) {
	in.ControlPlane.Spec.Config.APIVIPs, in.ControlPlane.Spec.Config.IngressVIPs = nil, nil
}

func TestClashes(t *testing.T) {
	deleting := controlPlane("going", "c1", []string{"192.168.111.5"}, nil)
	deleting.DeletionTimestamp = ptr.To(metav1.Now())
	elsewhere := controlPlane("c1", "c1", nil, nil)
	elsewhere.Namespace = "tenant"
	for name, tc := range map[string]struct {
		other *controlplanev1.OpenshiftAssistedControlPlane
		want  string
	}{
		"none": {controlPlane("c2", "c2", []string{"192.168.111.7"}, nil), ""},
		"one address": {
			controlPlane("c2", "c2", []string{"192.168.111.6"}, nil),
			"the VIPs 192.168.111.6 are already used by control plane c2. ",
		},
		"two addresses": {
			controlPlane("c2", "c2", []string{"192.168.111.6"}, []string{"192.168.111.5"}),
			"the VIPs 192.168.111.5, 192.168.111.6 are already used by control plane c2. ",
		},
		"domain":                        {elsewhere, "the domain c1.lab.example is already used by 1 in other namespaces. "},
		"control plane being deleted":   {deleting, ""},
		"control plane without Cluster": {controlPlane("c2", "", nil, nil), ""},
	} {
		in := valid()
		in.Others = append(in.Others, tc.other)
		found := strings.Join(Check(in).Warnings, "; ")
		if tc.want == "" {
			NewWithT(t).Expect(found).To(BeEmpty(), name)
		} else {
			NewWithT(t).Expect(found).To(ContainSubstring(tc.want), name)
		}
	}
}

// TestClashMessageIsStable checks a large number of clashes, in any order of the cache.
func TestClashMessageIsStable(t *testing.T) {
	g := NewWithT(t)
	in := valid()
	for i := range 500 {
		other := controlPlane(fmt.Sprintf("c%03d", i), "x", []string{"192.168.111.5"}, nil)
		if i >= 5 {
			other.Namespace = "tenant"
		}
		in.Others = append(in.Others, other)
	}
	result := Check(in)
	g.Expect(result.Warnings).To(ConsistOf("the VIPs 192.168.111.5 are already used by control plane c000, c001, c002 and 2 more and " +
		"495 in other namespaces. " +
		"Each cluster needs its own addresses in a network"))
	slices.Reverse(in.Others)
	g.Expect(Check(in)).To(Equal(result))
}

const mirrors = `
unqualified-search-registries = ["registry.lab.example"]
[[registry]]
prefix = ""
location = "quay.io/openshift-release-dev"
[[registry.mirror]]
location = "registry.lab.example:5000/ocp"
`

func TestRegistries(t *testing.T) {
	const release = "quay.io/openshift-release-dev/ocp-release@sha256:aa"
	only := func(covered string) func(string) bool {
		return func(image string) bool { return strings.HasPrefix(image, covered) }
	}
	for name, tc := range map[string]struct {
		registries *Registries
		covered    func(string) bool
		image      string
		want       string
		byVersion  bool
	}{
		"all covered": {ParseRegistries("m", map[string]string{"registries.conf": mirrors}), only(""), release, "", false},
		"mirror not covered": {
			ParseRegistries("m", map[string]string{"registries.conf": mirrors}), only("quay.io"), release,
			"the pull secret pull has no credentials for mirrors (registry.lab.example:5000/ocp). Add them", false,
		},
		"release image not covered": {
			nil, only("registry.lab.example"), release,
			"the pull secret pull has no credentials for the release image " + release, false,
		},
		"release image mirrored": {
			ParseRegistries("m", map[string]string{"registries.conf": mirrors}), only("registry.lab.example"),
			release,
			"", false,
		},
		"another release image": {
			ParseRegistries("m", map[string]string{"registries.conf": mirrors}), only("registry.lab.example"),
			"quay.io/openshift-release-dev-2/x@sha256:aa", "quay.io/openshift-release-dev-2/x", false,
		},
		"release image resolved by version": {nil, only("registry.lab.example"), release, "", true},
		"release image unknown":             {nil, only("registry.lab.example"), "", "", false},
		"registry mirrored": {ParseRegistries("m", map[string]string{"registries.conf": strings.Replace(mirrors, `prefix = ""`,
			`prefix = "*.io"`, 1)}), only("registry.lab"), "registry.quay.io/x@sha256:aa", "", false},
		"mirror for tags": {
			ParseRegistries("m", map[string]string{"registries.conf": mirrors + "pull-from-mirror = \"tag-only\"\n"}),
			only("registry.lab.example"), release, "the pull secret pull has no credentials for the release image " + release, false,
		},
		"entry without mirror": {ParseRegistries("m", map[string]string{"registries.conf": mirrors +
			"[[registry]]\nlocation = \"example.com\"\n"}), only("registry"), "example.com/x@sha256:aa", "example.com/x", false},
		"invalid mirrors": {
			ParseRegistries("m", map[string]string{"registries.conf": "[["}), only(""), release,
			"ConfigMap m, key registries.conf cannot be read as TOML", false,
		},
	} {
		in := valid()
		in.ControlPlane.Spec.Config.PullSecretRef = &corev1.LocalObjectReference{Name: "pull"}
		in.Registries, in.Covered, in.ReleaseImage = tc.registries, tc.covered, tc.image
		if !tc.byVersion {
			in.ControlPlane.Spec.Config.ClusterImageSetRef = &controlplanev1.ClusterImageSetReference{Name: "set"}
		}
		found := strings.Join(Check(in).Warnings, "; ")
		if tc.want == "" {
			NewWithT(t).Expect(found).To(BeEmpty(), name)
		} else {
			NewWithT(t).Expect(found).To(ContainSubstring(tc.want), name)
		}
	}
}

func TestMirrorsThatChangeTooLate(t *testing.T) {
	later := ParseRegistries("m", map[string]string{"registries.conf": mirrors})
	former := ParseRegistries("m", map[string]string{"registries.conf": "former"}).Digest
	for name, tc := range map[string]struct {
		registered string
		begun      bool
		want       bool
	}{
		"the same content":         {later.Digest, true, false},
		"other content":            {former, true, true},
		"before the installation":  {former, false, false}, // it is registered again
		"content was not recorded": {"", true, false},
	} {
		in := valid()
		in.ControlPlane.Spec.Config.ImageRegistryRef = &corev1.LocalObjectReference{Name: "m"}
		in.Registries, in.Begun, in.Install = later, tc.begun, &hiveext.AgentClusterInstall{}
		in.Install.Annotations = map[string]string{bootstrapv1.MirrorsDigestAnnotation: tc.registered}
		found := strings.Join(Check(in).Warnings, "; ")
		if tc.want {
			NewWithT(t).Expect(found).To(ContainSubstring("ConfigMap m (config.imageRegistryRef) changed after the installation began"),
				name)
		} else {
			NewWithT(t).Expect(found).NotTo(ContainSubstring("changed"), name)
		}
	}
	in := valid()
	in.Begun = true
	NewWithT(t).Expect(Check(in)).To(Equal(Result{}), "without mirrors")
}

func TestUnreadablePullSecret(t *testing.T) {
	g := NewWithT(t)
	in := valid()
	g.Expect(Check(in).Unknown).To(BeEmpty(), "no pull secret")
	in.ControlPlane.Spec.Config.PullSecretRef = &corev1.LocalObjectReference{Name: "pull"}
	g.Expect(Check(in).Unknown).To(ConsistOf("the pull secret pull cannot be read"))
}

func TestInvalidMirrors(t *testing.T) {
	for want, data := range map[string]map[string]string{
		"has no key registries.conf":           {"registries": mirrors},
		"has no mirror":                        {"registries.conf": `unqualified-search-registries = ["x"]`},
		"has no mirror. Each":                  {"registries.conf": strings.ReplaceAll(mirrors, "location = \"quay.io", "loc = \"quay.io")},
		"cannot be read as TOML":               {"registries.conf": "registry: []"},
		"line 1 is nested too deeply":          {"registries.conf": "a" + strings.Repeat(".a", 40) + " = 1\n" + mirrors},
		"it has 200 KiB (maximum 128 KiB)":     {"registries.conf": mirrors + strings.Repeat("#", 200<<10)},
		"pull-from-mirror = \"tags\"":          {"registries.conf": mirrors + "pull-from-mirror = \"tags\"\n"},
		"ca-bundle.crt has no PEM certificate": {"registries.conf": mirrors, "ca-bundle.crt": "x"},
	} {
		NewWithT(t).Expect(ParseRegistries("m", data).Problem).To(And(HavePrefix("ConfigMap m"), ContainSubstring(want)))
	}
	NewWithT(t).Expect(ParseRegistries("m", map[string]string{"registries.conf": mirrors}).Problem).To(BeEmpty())
}

func TestPrefixOfMirrors(t *testing.T) {
	g := NewWithT(t)
	parsed := ParseRegistries("m", map[string]string{"registries.conf": strings.Replace(mirrors, `prefix = ""`,
		`prefix = "example.com/ocp"`, 1)})
	g.Expect(parsed.mirrored("example.com/ocp@sha256:aa")).To(BeTrue())
	g.Expect(parsed.mirrored("example.com/ocp")).To(BeTrue())
	g.Expect(parsed.mirrored("example.com/ocp-other@sha256:aa")).To(BeFalse())
	g.Expect(parsed.mirrored("other.com/ocp@sha256:aa")).To(BeFalse())
}

func TestMirrorsOf(t *testing.T) {
	const image = "quay.io/openshift-release-dev/ocp-release:4.19.3-x86_64"
	entry := func(prefix, location string, mirrors ...string) string {
		text := "[[registry]]\nprefix = \"" + prefix + "\"\nlocation = \"" + location + "\"\nmirror-by-digest-only = true\n"
		var textSb241 strings.Builder
		for _, mirror := range mirrors {
			textSb241.WriteString("[[registry.mirror]]\nlocation = \"" + mirror + "\"\n")
		}
		text += textSb241.String()
		return text
	}
	for situation, tc := range map[string]struct {
		text string
		want []string
	}{
		"the repository": {
			entry("", "quay.io/openshift-release-dev/ocp-release", "m:5000/a", "m:5000/b"),
			[]string{"m:5000/a:4.19.3-x86_64", "m:5000/b:4.19.3-x86_64"},
		},
		"the registry": {entry("", "quay.io", "m:5000"), []string{"m:5000/openshift-release-dev/ocp-release:4.19.3-x86_64"}},
		"the longest prefix": {
			entry("", "quay.io", "m:5000/all") + entry("", "quay.io/openshift-release-dev", "m:5000/dev"),
			[]string{"m:5000/dev/ocp-release:4.19.3-x86_64"},
		},
		"a prefix before a location": {
			entry("quay.io/openshift-release-dev", "other.example", "m:5000/dev"),
			[]string{"m:5000/dev/ocp-release:4.19.3-x86_64"},
		},
		"a wildcard":                 {entry("*.io", "", "m:5000"), []string{"m:5000/openshift-release-dev/ocp-release:4.19.3-x86_64"}},
		"a name that only begins so": {entry("", "quay.io/openshift-release", "m:5000/a"), nil},
		"another registry":           {entry("", "registry.redhat.io", "m:5000/a"), nil},
		"no TOML":                    {"[[", nil},
		"a mirror for digests only": {
			entry("", "quay.io", "m:5000") +
				"pull-from-mirror = \"digest-only\"\n[[registry.mirror]]\nlocation = \"n:5000\"\n",
			[]string{"n:5000/openshift-release-dev/ocp-release:4.19.3-x86_64"},
		},
		"a mirror for tags only": {
			entry("", "quay.io", "m:5000") + "pull-from-mirror = \"tag-only\"\n",
			[]string{"m:5000/openshift-release-dev/ocp-release:4.19.3-x86_64"},
		},
		"a mirror for all": {
			entry("", "quay.io", "m:5000") + "pull-from-mirror = \"all\"\n",
			[]string{"m:5000/openshift-release-dev/ocp-release:4.19.3-x86_64"},
		},
		"a mirror for the unknown": {entry("", "quay.io", "m:5000") + "pull-from-mirror = \"tags\"\n", nil},
		"a mirror that is blocked": {
			entry("", "quay.io", "m:5000", "n:5000") + "[[registry]]\nlocation = \"m:5000\"\nblocked = true\n",
			[]string{"n:5000/openshift-release-dev/ocp-release:4.19.3-x86_64"},
		},
		"a source that is blocked": {
			entry("", "quay.io") + "blocked = true\n[[registry.mirror]]\nlocation = \"m:5000\"\n",
			[]string{"m:5000/openshift-release-dev/ocp-release:4.19.3-x86_64"},
		},
	} {
		t.Run(situation, func(t *testing.T) {
			NewWithT(t).Expect(ParseRegistries("m", map[string]string{"registries.conf": tc.text}).MirrorsOf(image)).To(Equal(tc.want))
		})
	}
	g := NewWithT(t)
	g.Expect((*Registries)(nil).MirrorsOf(image)).To(BeEmpty())
	g.Expect((*Registries)(nil).InsecureOf(image)).To(BeEmpty())
	g.Expect((*Registries)(nil).Blocks(image)).To(BeFalse())
	g.Expect((*Registries)(nil).Authorities()).To(BeEmpty())
	g.Expect(ParseRegistries("m", map[string]string{"registries.conf": "", "ca-bundle.crt": "none"}).Authorities()).To(BeEmpty())
}

func TestBlockedRegistries(t *testing.T) {
	const image = "quay.io/ocp/release:4.19.3"
	for name, tc := range map[string]struct {
		text string
		want bool
	}{
		"the registry":       {"[[registry]]\nlocation = \"quay.io\"\nblocked = true\n", true},
		"all below a domain": {"[[registry]]\nprefix = \"*.io\"\nblocked = true\n", true},
		"not":                {"[[registry]]\nlocation = \"quay.io\"\n", false},
		"another repository": {"[[registry]]\nlocation = \"quay.io/other\"\nblocked = true\n", false},
		"a longer prefix decides": {
			"[[registry]]\nlocation = \"quay.io\"\nblocked = true\n[[registry]]\nlocation = \"quay.io/ocp\"\n",
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(ParseRegistries("m", map[string]string{"registries.conf": tc.text}).Blocks(image)).To(Equal(tc.want))
		})
	}
}

func TestInsecureOf(t *testing.T) {
	const image = "quay.io/ocp/release:4.19.3"
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"no entry sets insecure": {"[[registry]]\nlocation = \"quay.io\"\n[[registry.mirror]]\nlocation = \"m:5000\"\n", nil},
		"one of two mirrors": {"[[registry]]\nlocation = \"quay.io\"\n[[registry.mirror]]\nlocation = " +
			"\"m:5000\"\n[[registry.mirror]]\nlocation = \"n:5000\"\ninsecure = true\n", []string{"n:5000/ocp/release:4.19.3"}},
		"the source, not its mirror": {
			"[[registry]]\nlocation = \"quay.io\"\ninsecure = true\n[[registry.mirror]]\nlocation = \"m:5000\"\n",
			[]string{image},
		},
		"another location": {"[[registry]]\nprefix = \"quay.io\"\nlocation = \"m:5000\"\ninsecure = true\n", nil},
		"another registry": {"[[registry]]\nlocation = \"docker.io\"\ninsecure = true\n", nil},
		"a longer prefix decides": {
			"[[registry]]\nlocation = \"quay.io\"\ninsecure = true\n[[registry]]\nlocation = \"quay.io/ocp\"\n",
			nil,
		},
		"a wildcard without location": {"[[registry]]\nprefix = \"*.io\"\ninsecure = true\n", []string{image}},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(ParseRegistries("m", map[string]string{"registries.conf": tc.text}).InsecureOf(image)).To(Equal(tc.want))
		})
	}
}
