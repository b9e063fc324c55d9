package e2e

import (
	"cmp"
	"context"
	"net/http"
	"path"
	"slices"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/judge"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/snapshot"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/findings"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/assistedsim"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// mistake is an error in the input of a single-node cluster.
type mistake struct {
	name      string
	mutations lab.Mutations
	// before breaks something other than the manifests; with simulated, only the simulator supports that.
	before    func(ctx context.Context, namespace string)
	simulated bool
	// reason and message are in the summary of the control plane (condition) or, without a condition, of the
	// host's config.
	condition, reason string
	message           func(*lab.Cluster) string
	// onHost is true if the mistake concerns the host, so that the texts name the host.
	onHost bool
	// cause is the reason of the first cause. Default: reason.
	cause string
	// state is what the mistake leads to. Default: Blocked.
	state judge.State
	// retried is how often per second the simulated assisted-service retries. We report the start and the end of
	// each attempt.
	retried int
	// rebooted is true if the fix boots the host again.
	rebooted bool
	// fix fixes the mistake, without any restart.
	fix func(ctx context.Context, cluster *lab.Cluster)
}

// text returns a text that does not depend on the cluster.
func text(text string) func(*lab.Cluster) string { return func(*lab.Cluster) string { return text } }

func mistakes() []mistake {
	applyRest := func(ctx context.Context, cluster *lab.Cluster) {
		GinkgoHelper()
		Expect(cluster.ApplyRest(ctx)).To(Succeed())
	}
	return append([]mistake{
		wrongNetwork(), // the first one: after five minutes the control plane reports it, too
		{
			name: "pull-secret", mutations: lab.Mutations{Without: without(secretKind)},
			condition: controlplanev1.InstalledCondition, reason: controlplanev1.PullSecretMissingReason,
			message: text("bad-pull-secret"), fix: applyRest,
		},
		{
			name: "infra-template", mutations: lab.Mutations{Without: without(templateKind)},
			condition: controlplanev1.InstalledCondition, reason: controlplanev1.InfraTemplateMissingReason,
			message: text("bad-control-plane"), fix: applyRest,
		},
		{
			name: "infrastructure", mutations: lab.Mutations{Without: without("Metal3Cluster")},
			condition: controlplanev1.InstalledCondition, reason: controlplanev1.WaitingForClusterInfrastructureReason,
			message: text("infrastructure"), fix: applyRest,
			// It may be applied a moment later.
			cause: clusterv1.ObjectDoesNotExistReason, state: judge.Progressing,
		},
		{
			name:      "mirrors",
			mutations: lab.Mutations{Edit: edit(controlPlaneKind, map[string]any{"name": "mirrors"}, "spec", "config", "imageRegistryRef")},
			condition: controlplanev1.InstalledCondition, reason: controlplanev1.ManifestsMissingReason,
			message: text("mirrors"),
			fix:     func(ctx context.Context, c *lab.Cluster) { changeSpec(ctx, c, `{"config":{"imageRegistryRef":null}}`) },
		},
		{
			name: "image-set",
			mutations: lab.Mutations{Edit: edit(controlPlaneKind, map[string]any{"name": "release-of-my-own"}, "spec", "config",
				"clusterImageSetRef")},
			condition: controlplanev1.InstalledCondition, reason: controlplanev1.ClusterImageSetMissingReason,
			message: text("release-of-my-own"),
			fix: func(ctx context.Context, _ *lab.Cluster) {
				set := &hivev1.ClusterImageSet{ObjectMeta: metav1.ObjectMeta{Name: "release-of-my-own"}}
				set.Spec.ReleaseImage = laboratory.Registry.OCPRepository() + ":4.19.10-x86_64"
				Expect(laboratory.Client().Create(ctx, set)).To(Succeed())
			},
		},
		{
			name:      "version",
			mutations: lab.Mutations{Edit: edit(controlPlaneKind, "4.19.99", "spec", "distributionVersion")},
			condition: controlplanev1.InstalledCondition, reason: controlplanev1.ReleaseImageNotFoundReason,
			message: text("4.19.99"),
			fix: func(context.Context, *lab.Cluster) {
				_, err := laboratory.Registry.Publish("4.19.99")
				Expect(err).NotTo(HaveOccurred())
			},
		},
		{
			name:      "kubernetes-version",
			mutations: lab.Mutations{Edit: edit(controlPlaneKind, "v1.33.5", "spec", "version")},
			condition: controlplanev1.InstalledCondition, reason: controlplanev1.KubernetesVersionMismatchReason,
			message: text("has Kubernetes"),
			fix: func(ctx context.Context, c *lab.Cluster) {
				Expect(rackHostOf(c.Hosts[0]).Boots()).To(BeEmpty(), "a wrong pair is not installed")
				changeSpec(ctx, c, `{"version":"`+kubernetesOf(installedVersion)+`"}`)
			},
		},
		{
			name:      "mac",
			mutations: lab.Mutations{HostOptions: []hosts.HostOption{hosts.WithoutMAC()}},
			reason:    bootstrapv1.WaitingForHostIdentityReason, state: judge.Progressing, // an inspection may still find it
			message: text("no MAC address"), onHost: true,
			fix: func(ctx context.Context, c *lab.Cluster) {
				hardware := hosts.NewHardware(path.Join(c.Namespace, c.Hosts[0].Name))
				patch(ctx, c.Hosts[0].DeepCopy(), `{"spec":{"bootMACAddress":"`+hardware.NICs[0].MAC+`"}}`)
			},
		},
		{
			name: "image", simulated: true,
			before: func(_ context.Context, namespace string) {
				laboratory.Service.FailImage(types.NamespacedName{Namespace: namespace}, "no OS image for this architecture")
			},
			reason: bootstrapv1.DiscoveryImageFailedReason, message: text("no OS image for this architecture"), fix: healImage,
		},
		{
			name: "preparation", simulated: true,
			before: func(_ context.Context, namespace string) {
				laboratory.Service.FailPreparation(types.NamespacedName{Namespace: namespace, Name: "bad"}, "cannot create manifests")
			},
			condition: controlplanev1.InstalledCondition, reason: controlplanev1.PreparationFailedReason,
			message: text("cannot create manifests"), retried: 1,
			fix: func(_ context.Context, c *lab.Cluster) { laboratory.Service.FailPreparation(c.Key(), "") },
		},
		{
			name: "ignition", mutations: lab.Mutations{Edit: diskImage},
			before: func(_ context.Context, namespace string) { laboratory.FailDownload(namespace, outOfOrder) },
			reason: bootstrapv1.IgnitionDownloadFailedReason, message: text("ignition"), fix: healDownload,
		},
		keylessPullSecret(), foreignInstallation(),
	}, slices.Concat(unsuitableHosts(), wrongHosts())...)
}

// expectShown checks what a user sees of a mistake: the columns of kubectl get, the conditions and Events of kubectl describe.
// kubectl openshift-agent why shows the first cause with the advice of the documentation. A mistake that the user has to
// correct is a Warning.
func expectShown(ctx context.Context, user *terminal, cluster *lab.Cluster, m mistake) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) { // another object may have a more urgent cause for a moment
		get, _ := user.kubectl(ctx, cluster.Namespace, "get", "oacp")
		if m.condition != "" && m.state == "" {
			g.Expect(column(get, "REASON")).To(Equal([]string{m.reason}), get)
		}
		if m.condition == "" {
			get, _ = user.kubectl(ctx, cluster.Namespace, "get", "oac")
			g.Expect(column(get, "REASON")).To(Equal([]string{m.reason}), get)
			if column(get, "HOST")[0] != "" { // the provider knows the host
				g.Expect(column(get, "HOST")).To(Equal([]string{cluster.Hosts[0].Name}), get)
			}
		}
		expectWhy(ctx, g, user, cluster, m)
	}).WithTimeout(soon).Should(Succeed())
	kind := "oac"
	if m.condition != "" {
		kind = "oacp"
	}
	Eventually(ctx, func(g Gomega) { // Events are written in the background
		describe, _ := user.kubectl(ctx, cluster.Namespace, "describe", kind)
		g.Expect(describe).To(MatchRegexp(`Reason: +`+m.reason+`\n`), "a condition")
		g.Expect(unwrapped(describe)).To(ContainSubstring(m.message(cluster)))
		if m.state == "" {
			g.Expect(describe).To(MatchRegexp(`Warning +`+m.reason+` `), "an Event")
		}
	}).WithTimeout(soon).Should(Succeed())
	if m.state != "" {
		Expect(events(ctx, cluster.Namespace, m.reason)).To(BeEmpty(), "the wait may end without an action")
	}
}

// expectWhy checks the output and the exit code of kubectl openshift-agent why.
func expectWhy(ctx context.Context, g Gomega, user *terminal, cluster *lab.Cluster, m mistake) {
	shown, code := user.kubectl(ctx, cluster.Namespace, "openshift-agent", "why", cluster.Name)
	cause := judge.Cause{Reason: cmp.Or(m.cause, m.reason)}
	cause.Object.Kind = snapshot.KindConfig
	if m.condition != "" {
		cause.Object.Kind = snapshot.KindControlPlane
	}
	state := cmp.Or(m.state, judge.Blocked)
	g.Expect(shown).To(HavePrefix("Cluster %s is %s: %s\n", cluster.Key(), state, cause.Reason))
	g.Expect(code).To(Equal(map[judge.State]int{judge.Blocked: 3, judge.Progressing: 2}[state]), shown)
	if m.onHost {
		g.Expect(shown).To(ContainSubstring(cluster.Hosts[0].Name))
	}
	advice, documented := judge.AdviceFor(&cause)
	g.Expect(documented).To(Equal(cause.Reason != clusterv1.ObjectDoesNotExistReason), "only reasons of the providers have advice")
	if documented {
		g.Expect(unwrapped(shown)).To(ContainSubstring("What to do: " + unwrapped(advice.Text)))
		g.Expect(advice.Pages).To(ContainElement(MatchRegexp(`^docs/conditions\.md#(\w+-)?`+cause.Reason+`$`)), "the anchor of the reason")
		for _, page := range advice.Pages {
			g.Expect(shown).To(ContainSubstring("/" + page + "\n"))
		}
	}
}

// expectEnded checks what a user sees after the correction of a mistake: no reason of a problem, and the Event about its end.
func expectEnded(ctx context.Context, user *terminal, cluster *lab.Cluster, m mistake) {
	GinkgoHelper()
	get, _ := user.kubectl(ctx, cluster.Namespace, "get", "oacp")
	Expect(column(get, "REASON")).To(Equal([]string{""}), get)
	why, code := user.kubectl(ctx, cluster.Namespace, "openshift-agent", "why", cluster.Name)
	Expect(code).To(BeElementOf(0, 2), why)
	if m.state == "" && !m.rebooted { // with a Machine that was deleted, its problem ends without an Event
		Eventually(ctx, events).WithArguments(cluster.Namespace, findings.ProblemEndedReason).WithTimeout(soon).
			Should(ContainElement(HaveField("Message", HaveSuffix("no longer reports "+m.reason))))
	}
}

// wrongNetwork is a machine network in which the host has no address.
func wrongNetwork() mistake {
	return mistake{
		name:      "machine-network",
		mutations: lab.Mutations{Edit: edit(controlPlaneKind, []any{"10.99.0.0/24"}, "spec", "config", "machineNetwork")},
		reason:    bootstrapv1.WaitingForHostValidationReason, message: text("machine network"), onHost: true,
		state: judge.Progressing, // most validations succeed a moment later
		fix: func(ctx context.Context, c *lab.Cluster) {
			changeSpec(ctx, c, `{"config":{"machineNetwork":["192.168.111.0/24"]}}`)
		},
	}
}

// wrongHosts are hosts that differ from their BareMetalHosts, or are too small.
func wrongHosts() []mistake {
	const otherMAC = "0a:00:00:00:be:ef"
	return []mistake{
		{
			name: "boot-mac",
			before: func(_ context.Context, namespace string) { // otherwise the server would get a NIC with that address
				key := path.Join(namespace, "bad-0")
				laboratory.Rack.SetHardware(key, hosts.NewHardware(key))
			},
			mutations: lab.Mutations{HostOptions: []hosts.HostOption{
				func(_ int, host *metal3api.BareMetalHost) { host.Spec.BootMACAddress = otherMAC },
			}},
			// The check before the boot explains why the host is refused.
			reason: bootstrapv1.HostRefusedReason, cause: bootstrapv1.BMCOfAnotherServerReason, message: text(otherMAC),
			onHost: true, rebooted: true,
			fix: func(ctx context.Context, c *lab.Cluster) {
				hardware := hosts.NewHardware(path.Join(c.Namespace, c.Hosts[0].Name))
				recreateHost(ctx, c, func(host *metal3api.BareMetalHost) { host.Spec.BootMACAddress = hardware.NICs[0].MAC })
			},
		},
		{
			name: "small-host",
			mutations: lab.Mutations{Edit: edit(controlPlaneKind, map[string]any{"minCPUCores": int64(64)}, "spec",
				"openshiftAssistedConfigSpec", "hostRequirements")},
			reason: bootstrapv1.HostBelowRequirementsReason, message: text("64"), onHost: true,
			fix: func(ctx context.Context, c *lab.Cluster) {
				changeSpec(ctx, c, `{"openshiftAssistedConfigSpec":{"hostRequirements":{"minCPUCores":16}}}`)
			},
		},
		{
			name: "bmc-password",
			before: func(_ context.Context, namespace string) {
				laboratory.Rack.Prepare(path.Join(namespace, "bad-0"), func(host *hosts.Host) {
					host.FailTask(hosts.Registering, "the BMC refuses user and password")
				})
			},
			reason: bootstrapv1.NoHostFitsReason, message: text("registration error: the BMC refuses user and password"), onHost: true,
			fix: func(ctx context.Context, c *lab.Cluster) { repair(ctx, c.Hosts[0], hosts.Registering) },
		},
	}
}

// keylessPullSecret is a pull secret under another key, as "kubectl create secret generic" creates it.
func keylessPullSecret() mistake {
	var right *unstructured.Unstructured
	return mistake{
		name: "pull-secret-key",
		mutations: lab.Mutations{Edit: func(object *unstructured.Unstructured) {
			if object.GetKind() == secretKind {
				right = object.DeepCopy()
				object.Object["type"], object.Object["stringData"] = string(corev1.SecretTypeOpaque), map[string]any{"pull-secret": "{}"}
			}
		}},
		condition: controlplanev1.InstalledCondition, reason: controlplanev1.PullSecretMissingReason,
		message: text("has no key " + corev1.DockerConfigJsonKey),
		fix: func(ctx context.Context, _ *lab.Cluster) {
			Expect(laboratory.Client().Delete(ctx, right.DeepCopy())).To(Succeed(), "the type of a Secret is immutable")
			Expect(laboratory.Apply(ctx, right)).To(Succeed())
		},
	}
}

// foreignInstallation is a ClusterDeployment that another client created with the name of the control plane.
func foreignInstallation() mistake {
	deployment := func(namespace string) *hivev1.ClusterDeployment {
		d := &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "bad"}}
		d.Spec.ClusterName, d.Spec.BaseDomain = "bad", "example.com"
		return d
	}
	return mistake{
		name: "name",
		before: func(ctx context.Context, namespace string) {
			Expect(laboratory.EnsureNamespace(ctx, namespace)).To(Succeed())
			Expect(laboratory.Client().Create(ctx, deployment(namespace))).To(Succeed())
		},
		condition: controlplanev1.InstalledCondition, reason: controlplanev1.InstallationNotOursReason,
		message: text("Give the control plane another name"),
		fix: func(ctx context.Context, c *lab.Cluster) {
			Expect(laboratory.Client().Delete(ctx, deployment(c.Namespace))).To(Succeed())
		},
	}
}

// unsuitableHosts are BareMetalHosts that Metal3 does not choose, or that cannot be installed.
func unsuitableHosts() []mistake {
	changed := func(change func(*metal3api.BareMetalHost)) lab.Mutations {
		return lab.Mutations{HostOptions: []hosts.HostOption{func(_ int, host *metal3api.BareMetalHost) { change(host) }}}
	}
	noDisk := hosts.WithRootDeviceHints(metal3api.RootDeviceHints{DeviceName: "/dev/nvme7n1"})
	return []mistake{
		{
			name: "hosts", mutations: lab.Mutations{ExtraHosts: -1},
			reason: bootstrapv1.NoHostFitsReason, message: text("no BareMetalHost"),
			fix: func(ctx context.Context, c *lab.Cluster) {
				var err error
				c.Hosts, err = hosts.NewBareMetalHosts(ctx, laboratory.Client(), c.Namespace, 1, hosts.WithName(c.Name))
				Expect(err).NotTo(HaveOccurred())
			},
		},
		{
			name: "host-selector",
			mutations: lab.Mutations{Edit: edit(templateKind, map[string]any{"matchLabels": map[string]any{poolLabel: "masters"}},
				"spec", "template", "spec", "hostSelector")},
			reason: bootstrapv1.NoHostFitsReason, message: text("labels do not match hostSelector " + poolLabel + "=masters"), onHost: true,
			fix: func(ctx context.Context, c *lab.Cluster) {
				patch(ctx, c.Hosts[0].DeepCopy(), `{"metadata":{"labels":{"`+poolLabel+`":"masters"}}}`)
			},
		},
		{
			name: "paused-host",
			mutations: changed(func(host *metal3api.BareMetalHost) {
				host.Annotations = map[string]string{metal3api.PausedAnnotation: "maintenance"}
			}),
			reason: bootstrapv1.NoHostFitsReason, message: text(metal3api.PausedAnnotation), onHost: true,
			fix: func(ctx context.Context, c *lab.Cluster) { annotate(ctx, c.Hosts[0], metal3api.PausedAnnotation, "") },
		},
		{
			name: "disk", mutations: lab.Mutations{HostOptions: []hosts.HostOption{noDisk}},
			reason: bootstrapv1.InstallationDiskNotFoundReason, message: text("/dev/nvme7n1"), onHost: true,
			fix: func(ctx context.Context, c *lab.Cluster) {
				patch(ctx, c.Hosts[0].DeepCopy(), `{"spec":{"rootDeviceHints":null}}`)
			},
		},
	}
}

// healImage makes images succeed again, and the service retry the failed ones.
func healImage(ctx context.Context, cluster *lab.Cluster) {
	GinkgoHelper()
	laboratory.Service.FailImage(types.NamespacedName{Namespace: cluster.Namespace}, "")
	for _, infraEnv := range state(ctx, cluster).InfraEnvs {
		laboratory.Service.FailImage(client.ObjectKeyFromObject(&infraEnv), "")
	}
}

// outOfOrder fails a download.
func outOfOrder(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "out of order", http.StatusInternalServerError)
}

// healDownload makes the downloads of a cluster succeed again.
func healDownload(_ context.Context, cluster *lab.Cluster) {
	laboratory.FailDownload(cluster.Namespace, nil)
}

// Table "Bad input" contains the usual failure of a download. Here are those that could block or exhaust a manager.
var _ = Describe("A download of a discovery Ignition config", Label("bad-input", "nightly"), func() {
	DescribeTable("that fails in another way is explained, and repeated",
		func(ctx SpecContext, name string, handler http.HandlerFunc) {
			namespace := "download-" + name
			laboratory.FailDownload(namespace, handler)
			cluster := apply(ctx, "sno", lab.Mutations{Namespace: namespace, ClusterName: name, LightAPI: lightly(), Edit: diskImage})
			wait(ctx, cluster, "reporting the download", func(s *lab.State) bool { return configHas(s, bootstrapv1.IgnitionDownloadFailedReason) })
			healDownload(ctx, cluster)
			waitAvailable(ctx, cluster)
			expectInstalled(ctx, cluster, 0)
		},
		Entry("without an end", NodeTimeout(2*installTimeout), "hanging", http.HandlerFunc(assistedsim.Hang)),
		Entry("of 100 MiB", NodeTimeout(2*installTimeout), "big", assistedsim.Oversize(100<<20)),
		Entry("of a login page", NodeTimeout(2*installTimeout), "login", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("<html>login</html>"))
		})),
	)
})

var _ = Describe("A refusal", Label("bad-input"), func() {
	DescribeTable("happens at admission, in words",
		func(ctx SpecContext, name string, change func(*unstructured.Unstructured), message string) {
			_, err := laboratory.ApplySample(ctx, "compact", lab.Mutations{
				Namespace: "refused-" + name, ClusterName: name, ExtraHosts: -3, Edit: change,
			})
			Expect(err).To(MatchError(ContainSubstring(message)))
		},
		Entry("of virtual addresses outside the machine network", NodeTimeout(soon), "vips",
			edit(controlPlaneKind, []any{"10.0.0.5"}, "spec", "config", "apiVIPs"),
			"each address of apiVIPs must be in a network of machineNetwork"),
		Entry("of a domain in upper case", NodeTimeout(soon), "domain",
			edit(controlPlaneKind, "Lab.Example.com", "spec", "config", "baseDomain"), "baseDomain must be a DNS domain such as example.com"),
		Entry("of a version that is an OpenShift release", NodeTimeout(soon), "release",
			edit(controlPlaneKind, "v4.19.10", "spec", "version"), "is an OpenShift release: set distributionVersion"),
		Entry("of a minor version", NodeTimeout(soon), "minor",
			edit(controlPlaneKind, "4.19", "spec", "distributionVersion"), "distributionVersion must be a full release such as 4.19.10"),
	)
})
