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

// right is a cluster of which nothing is wrong.
func right() *Inputs {
	cp := controlPlane("c1", "c1", []string{"192.168.111.5"}, []string{"192.168.111.6"})
	return &Inputs{
		Facts:  &facts.Facts{ControlPlane: cp},
		Names:  map[string]facts.Name{api: leadsTo("192.168.111.5"), app: leadsTo("192.168.111.6"), wildcard: {Answered: true}},
		Others: []*controlplanev1.OpenshiftAssistedControlPlane{cp},
	}
}

func leadsTo(addresses ...string) facts.Name {
	found := facts.Name{Answered: true}
	for _, address := range addresses {
		found.Addresses = append(found.Addresses, netip.MustParseAddr(address))
	}
	return found
}

func TestNothingIsWrong(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Names(right().Facts)).To(ConsistOf(api, app, wildcard))
	g.Expect(Check(right())).To(Equal(Result{}))
}

func TestNames(t *testing.T) {
	for name, tc := range map[string]struct {
		change            func(*Inputs)
		warnings, unknown []string
	}{
		"of the API lead elsewhere": {
			func(in *Inputs) { in.Names[api] = leadsTo("10.0.0.1", "192.168.111.5") },
			[]string{"api.c1.lab.example leads to 10.0.0.1, not to config.apiVIPs (192.168.111.5)"},
			nil,
		},
		"of applications lead to the API": {
			func(in *Inputs) { in.Names[app] = leadsTo("192.168.111.5") },
			[]string{"*.apps.c1.lab.example leads to 192.168.111.5, not to config.ingressVIPs (192.168.111.6)"},
			nil,
		},
		"do not exist": {
			func(in *Inputs) { in.Names[api] = leadsTo() },
			[]string{"api.c1.lab.example does not exist in the hub's DNS: create a record for 192.168.111.5 (config.apiVIPs)"},
			nil,
		},
		"one of two families": {
			func(in *Inputs) {
				in.ControlPlane.Spec.Config.APIVIPs = []string{"192.168.111.5", "fd00:0::5"}
				in.Names[api] = leadsTo("fd00::5")
			}, nil, nil,
		},
		"are any": {
			func(in *Inputs) { in.Names[wildcard] = leadsTo("192.168.111.6") },
			[]string{"every name below c1.lab.example leads to 192.168.111.6: OpenShift is not installed with a wildcard record *.c1.lab.example, replace it by records of api and *.apps"},
			nil,
		},
		"are being looked up":     {func(in *Inputs) { delete(in.Names, app) }, nil, []string{"*.apps.c1.lab.example is being looked up"}},
		"cannot be looked up":     {func(in *Inputs) { in.Names[api] = facts.Name{Answered: true, Failure: "DNS does not answer"} }, nil, []string{"api.c1.lab.example cannot be looked up on the hub: DNS does not answer"}},
		"of a single node, right": {func(in *Inputs) { single(in); in.Names[api] = leadsTo("10.0.0.1") }, nil, nil},
		"of a single node, none": {
			func(in *Inputs) { single(in); in.Names[api] = leadsTo() },
			[]string{"api.c1.lab.example does not exist in the hub's DNS: create a record"},
			nil,
		},
		"of a cluster with another one": {
			func(in *Inputs) {
				in.ControlPlane.Spec.Config.ClusterName = "other"
				in.Names = map[string]facts.Name{"api.other.lab.example": leadsTo("192.168.111.5"), "console-openshift-console.apps.other.lab.example": leadsTo("192.168.111.6")}
			}, nil, []string{"whether there is a wildcard record *.other.lab.example cannot be told yet"},
		},
	} {
		in := right()
		tc.change(in)
		early := len(in.Names) < len(Names(in.Facts))
		NewWithT(t).Expect(Check(in)).To(Equal(Result{Warnings: tc.warnings, Unknown: tc.unknown, Early: early}), name)
	}
}

func single(in *Inputs) {
	in.ControlPlane.Spec.Config.APIVIPs, in.ControlPlane.Spec.Config.IngressVIPs = nil, nil
}

func TestClustersThatClash(t *testing.T) {
	going := controlPlane("going", "c1", []string{"192.168.111.5"}, nil)
	going.DeletionTimestamp = ptr.To(metav1.Now())
	elsewhere := controlPlane("c1", "c1", nil, nil)
	elsewhere.Namespace = "tenant"
	for name, tc := range map[string]struct {
		other *controlplanev1.OpenshiftAssistedControlPlane
		want  string
	}{
		"not at all":                   {controlPlane("c2", "c2", []string{"192.168.111.7"}, nil), ""},
		"by an address":                {controlPlane("c2", "c2", []string{"192.168.111.6"}, nil), "of the VIPs 192.168.111.6 are also those of control plane c2: "},
		"by two":                       {controlPlane("c2", "c2", []string{"192.168.111.6"}, []string{"192.168.111.5"}), "of the VIPs 192.168.111.5, 192.168.111.6 are also those of control plane c2: "},
		"by their domain":              {elsewhere, "the domain c1.lab.example is also that of 1 in other namespaces: "},
		"with one that goes":           {going, ""},
		"with one that has no Cluster": {controlPlane("c2", "", nil, nil), ""},
	} {
		in := right()
		in.Others = append(in.Others, tc.other)
		found := strings.Join(Check(in).Warnings, "; ")
		if tc.want == "" {
			NewWithT(t).Expect(found).To(BeEmpty(), name)
		} else {
			NewWithT(t).Expect(found).To(ContainSubstring(tc.want), name)
		}
	}
}

// TestClashesAreToldAlike however many there are, and in whatever order the cache has them.
func TestClashesAreToldAlike(t *testing.T) {
	g := NewWithT(t)
	in := right()
	for i := range 500 {
		other := controlPlane(fmt.Sprintf("c%03d", i), "x", []string{"192.168.111.5"}, nil)
		if i >= 5 {
			other.Namespace = "tenant"
		}
		in.Others = append(in.Others, other)
	}
	told := Check(in)
	g.Expect(told.Warnings).To(ConsistOf("of the VIPs 192.168.111.5 are also those of control plane c000, c001, c002 and 2 more and 495 in other namespaces: " +
		"each cluster needs addresses of its own in a network"))
	slices.Reverse(in.Others)
	g.Expect(Check(in)).To(Equal(told))
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
		lookedUp   bool
	}{
		"all is covered":                    {ParseRegistries("m", map[string]string{"registries.conf": mirrors}), only(""), release, "", false},
		"the mirror is not":                 {ParseRegistries("m", map[string]string{"registries.conf": mirrors}), only("quay.io"), release, "the pull secret pull has no credentials for mirrors (registry.lab.example:5000/ocp): add them", false},
		"the release image is not":          {nil, only("registry.lab.example"), release, "the pull secret pull has no credentials for the release image " + release, false},
		"the release image is mirrored":     {ParseRegistries("m", map[string]string{"registries.conf": mirrors}), only("registry.lab.example"), release, "", false},
		"the release image is another one":  {ParseRegistries("m", map[string]string{"registries.conf": mirrors}), only("registry.lab.example"), "quay.io/openshift-release-dev-2/x@sha256:aa", "quay.io/openshift-release-dev-2/x", false},
		"the release image is looked up":    {nil, only("registry.lab.example"), release, "", true},
		"the release image is not known":    {nil, only("registry.lab.example"), "", "", false},
		"its registry is mirrored":          {ParseRegistries("m", map[string]string{"registries.conf": strings.Replace(mirrors, `prefix = ""`, `prefix = "*.io"`, 1)}), only("registry.lab"), "registry.quay.io/x@sha256:aa", "", false},
		"its mirror is for tags":            {ParseRegistries("m", map[string]string{"registries.conf": mirrors + "pull-from-mirror = \"tag-only\"\n"}), only("registry.lab.example"), release, "the pull secret pull has no credentials for the release image " + release, false},
		"it is blocked, and not mirrored":   {ParseRegistries("m", map[string]string{"registries.conf": mirrors + "[[registry]]\nlocation = \"example.com\"\n"}), only("registry"), "example.com/x@sha256:aa", "example.com/x", false},
		"the mirrors cannot be used at all": {ParseRegistries("m", map[string]string{"registries.conf": "[["}), only(""), release, "ConfigMap m, key registries.conf is no TOML", false},
	} {
		in := right()
		in.ControlPlane.Spec.Config.PullSecretRef = &corev1.LocalObjectReference{Name: "pull"}
		in.Registries, in.Covered, in.ReleaseImage = tc.registries, tc.covered, tc.image
		if !tc.lookedUp {
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
	for name, tc := range map[string]struct {
		registered string
		begun      bool
		want       bool
	}{
		"the same content":         {later.Digest, true, false},
		"other content":            {"former", true, true},
		"before the installation":  {"former", false, false}, // it is registered again
		"content was not recorded": {"", true, false},
	} {
		in := right()
		in.ControlPlane.Spec.Config.ImageRegistryRef = &corev1.LocalObjectReference{Name: "m"}
		in.Registries, in.Begun, in.Install = later, tc.begun, &hiveext.AgentClusterInstall{}
		in.Install.Annotations = map[string]string{bootstrapv1.MirrorsDigestAnnotation: tc.registered}
		found := strings.Join(Check(in).Warnings, "; ")
		if tc.want {
			NewWithT(t).Expect(found).To(ContainSubstring("ConfigMap m (config.imageRegistryRef) changed after the installation began"), name)
		} else {
			NewWithT(t).Expect(found).NotTo(ContainSubstring("changed"), name)
		}
	}
	in := right()
	in.Begun = true
	NewWithT(t).Expect(Check(in)).To(Equal(Result{}), "without mirrors")
}

func TestPullSecretThatCannotBeRead(t *testing.T) {
	g := NewWithT(t)
	in := right()
	g.Expect(Check(in).Unknown).To(BeEmpty(), "there is none")
	in.ControlPlane.Spec.Config.PullSecretRef = &corev1.LocalObjectReference{Name: "pull"}
	g.Expect(Check(in).Unknown).To(ConsistOf("the pull secret pull cannot be read"))
}

func TestMirrorsThatCannotBeUsed(t *testing.T) {
	for want, data := range map[string]map[string]string{
		"has no key registries.conf":           {"registries": mirrors},
		"names no mirror":                      {"registries.conf": `unqualified-search-registries = ["x"]`},
		"names no mirror: each":                {"registries.conf": strings.ReplaceAll(mirrors, "location = \"quay.io", "loc = \"quay.io")},
		"is no TOML":                           {"registries.conf": "registry: []"},
		"pull-from-mirror = \"tags\"":          {"registries.conf": mirrors + "pull-from-mirror = \"tags\"\n"},
		"ca-bundle.crt has no PEM certificate": {"registries.conf": mirrors, "ca-bundle.crt": "x"},
	} {
		NewWithT(t).Expect(ParseRegistries("m", data).Problem).To(And(HavePrefix("ConfigMap m"), ContainSubstring(want)))
	}
	NewWithT(t).Expect(ParseRegistries("m", map[string]string{"registries.conf": mirrors}).Problem).To(BeEmpty())
}

func TestPrefixOfMirrors(t *testing.T) {
	g := NewWithT(t)
	parsed := ParseRegistries("m", map[string]string{"registries.conf": strings.Replace(mirrors, `prefix = ""`, `prefix = "example.com/ocp"`, 1)})
	g.Expect(parsed.mirrored("example.com/ocp@sha256:aa")).To(BeTrue())
	g.Expect(parsed.mirrored("example.com/ocp")).To(BeTrue())
	g.Expect(parsed.mirrored("example.com/ocp-other@sha256:aa")).To(BeFalse())
	g.Expect(parsed.mirrored("other.com/ocp@sha256:aa")).To(BeFalse())
}

func TestMirrorsOfAnImage(t *testing.T) {
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
		"the repository":             {entry("", "quay.io/openshift-release-dev/ocp-release", "m:5000/a", "m:5000/b"), []string{"m:5000/a:4.19.3-x86_64", "m:5000/b:4.19.3-x86_64"}},
		"the registry":               {entry("", "quay.io", "m:5000"), []string{"m:5000/openshift-release-dev/ocp-release:4.19.3-x86_64"}},
		"the longest prefix":         {entry("", "quay.io", "m:5000/all") + entry("", "quay.io/openshift-release-dev", "m:5000/dev"), []string{"m:5000/dev/ocp-release:4.19.3-x86_64"}},
		"a prefix before a location": {entry("quay.io/openshift-release-dev", "other.example", "m:5000/dev"), []string{"m:5000/dev/ocp-release:4.19.3-x86_64"}},
		"a wildcard":                 {entry("*.io", "", "m:5000"), []string{"m:5000/openshift-release-dev/ocp-release:4.19.3-x86_64"}},
		"a name that only begins so": {entry("", "quay.io/openshift-release", "m:5000/a"), nil},
		"another registry":           {entry("", "registry.redhat.io", "m:5000/a"), nil},
		"no TOML":                    {"[[", nil},
		"a mirror for digests only":  {entry("", "quay.io", "m:5000") + "pull-from-mirror = \"digest-only\"\n[[registry.mirror]]\nlocation = \"n:5000\"\n", []string{"n:5000/openshift-release-dev/ocp-release:4.19.3-x86_64"}},
		"a mirror for tags only":     {entry("", "quay.io", "m:5000") + "pull-from-mirror = \"tag-only\"\n", []string{"m:5000/openshift-release-dev/ocp-release:4.19.3-x86_64"}},
		"a mirror for all":           {entry("", "quay.io", "m:5000") + "pull-from-mirror = \"all\"\n", []string{"m:5000/openshift-release-dev/ocp-release:4.19.3-x86_64"}},
		"a mirror for the unknown":   {entry("", "quay.io", "m:5000") + "pull-from-mirror = \"tags\"\n", nil},
		"a mirror that is blocked":   {entry("", "quay.io", "m:5000", "n:5000") + "[[registry]]\nlocation = \"m:5000\"\nblocked = true\n", []string{"n:5000/openshift-release-dev/ocp-release:4.19.3-x86_64"}},
		"a source that is blocked":   {entry("", "quay.io") + "blocked = true\n[[registry.mirror]]\nlocation = \"m:5000\"\n", []string{"m:5000/openshift-release-dev/ocp-release:4.19.3-x86_64"}},
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
		"the registry":            {"[[registry]]\nlocation = \"quay.io\"\nblocked = true\n", true},
		"all below a domain":      {"[[registry]]\nprefix = \"*.io\"\nblocked = true\n", true},
		"not":                     {"[[registry]]\nlocation = \"quay.io\"\n", false},
		"another repository":      {"[[registry]]\nlocation = \"quay.io/other\"\nblocked = true\n", false},
		"a longer prefix decides": {"[[registry]]\nlocation = \"quay.io\"\nblocked = true\n[[registry]]\nlocation = \"quay.io/ocp\"\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(ParseRegistries("m", map[string]string{"registries.conf": tc.text}).Blocks(image)).To(Equal(tc.want))
		})
	}
}

func TestPlainHTTPIsPermittedByLocation(t *testing.T) {
	const image = "quay.io/ocp/release:4.19.3"
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"no entry sets insecure":      {"[[registry]]\nlocation = \"quay.io\"\n[[registry.mirror]]\nlocation = \"m:5000\"\n", nil},
		"one of two mirrors":          {"[[registry]]\nlocation = \"quay.io\"\n[[registry.mirror]]\nlocation = \"m:5000\"\n[[registry.mirror]]\nlocation = \"n:5000\"\ninsecure = true\n", []string{"n:5000/ocp/release:4.19.3"}},
		"the source, not its mirror":  {"[[registry]]\nlocation = \"quay.io\"\ninsecure = true\n[[registry.mirror]]\nlocation = \"m:5000\"\n", []string{image}},
		"another location":            {"[[registry]]\nprefix = \"quay.io\"\nlocation = \"m:5000\"\ninsecure = true\n", nil},
		"another registry":            {"[[registry]]\nlocation = \"docker.io\"\ninsecure = true\n", nil},
		"a longer prefix decides":     {"[[registry]]\nlocation = \"quay.io\"\ninsecure = true\n[[registry]]\nlocation = \"quay.io/ocp\"\n", nil},
		"a wildcard without location": {"[[registry]]\nprefix = \"*.io\"\ninsecure = true\n", []string{image}},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(ParseRegistries("m", map[string]string{"registries.conf": tc.text}).InsecureOf(image)).To(Equal(tc.want))
		})
	}
}
