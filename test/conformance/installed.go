package conformance

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/blang/semver/v4"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// installedRules check an installed cluster and the history of its installation.
func (s *suite) installedRules() {
	full := func() *fixture { return s.fixtures.full }
	s.before(func(ctx SpecContext) { s.await(ctx, full()) }, installTimeout)

	s.bootstrapDataRules(full)
	s.controlPlaneRules(full)
	s.kubeconfigRules(full)

	s.rule("C17", "owner references", must, func(ctx SpecContext) {
		graph := OwnerGraph(slices.DeleteFunc(s.all(ctx, "full"), func(o object) bool { return s.ofHosts(ctx, &o) }))
		GinkgoWriter.Println(graph)
		Expect(unowned(s.all(ctx, "full"))).To(BeEmpty(), "objects of the cluster without a chain of owners")
		if s.OwnerGraph != "" {
			Expect(graph).To(Equal(s.OwnerGraph))
		}
	}, NodeTimeout(soon))
}

func (s *suite) bootstrapDataRules(full func() *fixture) {
	s.rule("B20", "template kind", must, func(ctx SpecContext) {
		Expect(s.Bootstrap.Template.Kind).To(Equal(s.Bootstrap.Kind.Kind + "Template"))
		Expect(schemaOf(s.crd(ctx, s.Bootstrap.Template), "spec", "template").Properties).To(And(HaveKey("metadata"), HaveKey("spec")))
		_, workers := s.machines(ctx, full())
		Expect(workers).NotTo(BeEmpty())
		for _, config := range s.configs(ctx, workers) {
			expectCloned(config)
		}
		s.expectMetadataOfTemplates(ctx, "full")
	})
	each := func(check func(m clusterv1.Machine, config, secret *object)) func(SpecContext) {
		return func(ctx SpecContext) { s.eachData(ctx, full(), check) }
	}
	s.rule("B10", "data secret", must, func(ctx SpecContext) {
		field := schemaOf(s.crd(ctx, s.Bootstrap.Kind), "status", "dataSecretName")
		Expect(field).To(And(HaveField("Type", "string"), HaveField("MinLength", HaveValue(BeEquivalentTo(1))),
			HaveField("MaxLength", HaveValue(BeEquivalentTo(253)))))
		each(func(m clusterv1.Machine, config, _ *object) {
			Expect(m.Spec.Bootstrap.DataSecretName).To(HaveValue(Equal(text(config, "status", "dataSecretName"))),
				"core set it in Machine %s", m.Name)
		})(ctx)
	})
	s.rule("B11", "name of the secret", must, each(func(m clusterv1.Machine, config, secret *object) {
		value, err := base64.StdEncoding.DecodeString(text(secret, "data", "value"))
		Expect(err).NotTo(HaveOccurred())
		Expect(value).NotTo(BeEmpty(), "the Secret that %s names has the bootstrap data of Machine %s", title(config), m.Name)
	}))
	s.rule("B12", "label of the secret", must, each(func(m clusterv1.Machine, _, secret *object) {
		Expect(secret.GetLabels()).To(HaveKeyWithValue(clusterv1.ClusterNameLabel, m.Spec.ClusterName))
	}))
	s.rule("B13", "owner of the secret", must, each(func(_ clusterv1.Machine, config, secret *object) {
		Expect(metav1.IsControlledBy(secret, config)).To(BeTrue(), title(secret))
	}))
	s.rule("B14", "shape of the secret", must, each(func(_ clusterv1.Machine, _, secret *object) {
		Expect(text(secret, "type")).To(Equal(string(clusterv1.ClusterSecretType)))
		Expect(at(secret, "data")).To(HaveKey("value"))
		keys := at(secret, "data").(map[string]any)
		delete(keys, "format") // the kubeadm provider sets it
		Expect(keys).To(HaveLen(1))
	}))
	s.rule("B16", "secret first, then the status", must, each(func(_ clusterv1.Machine, config, secret *object) {
		created := full().seen.first(secretKind, func(e entry) bool { return e.GetName() == secret.GetName() })
		reported := full().seen.first(s.Bootstrap.Kind, func(e entry) bool {
			return e.GetName() == config.GetName() && at(e.object, "status", "initialization", "dataSecretCreated") == true
		})
		Expect(created).NotTo(BeNil())
		Expect(reported).NotTo(BeNil())
		Expect(created.version).To(BeNumerically("<", reported.version))
	}))
	s.rule("B22", "sentinel file", should, func(ctx SpecContext) {
		controlPlane, workers := s.machines(ctx, full())
		for _, m := range slices.Concat(controlPlane, workers) {
			ignition, err := full().Ignition(ctx, m.Name)
			s.expectDone(err)
			expectSentinel(ignition)
		}
	}, NodeTimeout(soon))
}

// eachData checks every Machine of a cluster with its config and the Secret of its bootstrap data.
func (s *suite) eachData(ctx context.Context, f *fixture, check func(m clusterv1.Machine, config, secret *object)) {
	GinkgoHelper()
	controlPlane, workers := s.machines(ctx, f)
	machines := slices.Concat(controlPlane, workers)
	Expect(machines).NotTo(BeEmpty())
	for i, config := range s.configs(ctx, machines) {
		m := machines[i]
		secret := s.get(ctx, secretKind, types.NamespacedName{Namespace: m.Namespace, Name: text(config, "status", "dataSecretName")})
		Expect(secret).NotTo(BeNil(), "the bootstrap data of Machine %s", m.Name)
		check(m, config, secret)
	}
}

// sentinel is the file with which a host reports that its bootstrap has ended (bootstrap provider contract,
// "Sentinel file").
const sentinel = "/run/cluster-api/bootstrap-success.complete"

// expectSentinel expects that an Ignition config creates the sentinel file.
func expectSentinel(ignition []byte) {
	GinkgoHelper()
	var config struct {
		Systemd struct {
			Units []struct {
				Contents string `json:"contents"`
				Enabled  bool   `json:"enabled"`
			} `json:"units"`
		} `json:"systemd"`
	}
	Expect(json.Unmarshal(ignition, &config)).To(Succeed())
	Expect(config.Systemd.Units).To(ContainElement(And(HaveField("Enabled", true), HaveField("Contents", ContainSubstring(sentinel)))))
}

// expectConfigsReport expects that the configs of a cluster report the state of their hosts, and that the Machines
// repeat it: now, and during the installation.
func (s *suite) expectConfigsReport(ctx context.Context, f *fixture) {
	GinkgoHelper()
	s.eachData(ctx, f, func(m clusterv1.Machine, config, _ *object) {
		expectConditions(config, clusterv1.ReadyCondition)
		expectMirrored(Default, config, &m)
		waits := func(e entry) bool {
			return condition(e.object, clusterv1.MachineBootstrapConfigReadyCondition).Status == metav1.ConditionFalse
		}
		reported := f.seen.first(machineKind, func(e entry) bool {
			return e.GetName() == m.Name && waits(e) && reportedBy(f.seen.of(s.Bootstrap.Kind), config, e)
		})
		Expect(reported).NotTo(BeNil(), "a dependency of Machine %s that its config reported", m.Name)
	})
}

// expectDisturbanceReported disturbs the host of a Machine that joined an installed cluster. Its config has to report the
// problem, and its end; the Machine repeats both.
func (s *suite) expectDisturbanceReported(ctx context.Context, f *fixture) {
	GinkgoHelper()
	m := s.lateMachine(ctx, f)
	config := s.configs(ctx, []clusterv1.Machine{m})[0]
	ready := func(g Gomega) metav1.Condition {
		g.Expect(s.client.Get(ctx, client.ObjectKeyFromObject(&m), &m)).To(Succeed())
		now := s.again(ctx, config)
		expectMirrored(g, now, &m)
		return condition(now, clusterv1.ReadyCondition)
	}
	settle, err := f.Disturb(ctx, m.Name)
	s.expectDone(err)
	var reported metav1.Condition
	Eventually(func(g Gomega) {
		reported = ready(g)
		g.Expect(reported).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Message", Not(BeEmpty()))))
	}).Should(Succeed(), "the problem of the host of Machine %s", m.Name)
	s.addNote("reported about an installed host: %s", reported.Reason)
	Expect(settle(ctx)).To(Succeed())
	Eventually(func(g Gomega) { g.Expect(ready(g).Status).To(Equal(metav1.ConditionTrue)) }).Should(Succeed(),
		"the problem of Machine %s is over", m.Name)
	Expect(f.Available(ctx)).To(Succeed())
}

// expectMirrored expects that a Machine has the same condition as its config.
func expectMirrored(g Gomega, config *object, m *clusterv1.Machine) {
	GinkgoHelper()
	ready, mirrored := condition(config, clusterv1.ReadyCondition), find(m.Status.Conditions, clusterv1.MachineBootstrapConfigReadyCondition)
	g.Expect(mirrored).To(And(HaveField("Status", ready.Status), HaveField("Reason", ready.Reason), HaveField("Message", ready.Message)),
		"condition of Machine %s", m.Name)
}

// reportedBy reports whether the condition of a Machine about its config was once the condition of the config, with
// a message.
func reportedBy(configs []entry, config *object, machine entry) bool {
	mirrored := condition(machine.object, clusterv1.MachineBootstrapConfigReadyCondition)
	return mirrored.Message != "" && slices.ContainsFunc(configs, func(e entry) bool {
		ready := condition(e.object, clusterv1.ReadyCondition)
		return e.GetName() == config.GetName() && ready.Reason == mirrored.Reason && ready.Message == mirrored.Message
	})
}

func find(conditions []metav1.Condition, name string) metav1.Condition {
	if c := meta.FindStatusCondition(conditions, name); c != nil {
		return *c
	}
	return metav1.Condition{Type: name}
}

// expectConditions checks the form of all conditions, and that the wanted ones exist.
func expectConditions(o *object, wanted ...string) {
	GinkgoHelper()
	for _, name := range wanted {
		Expect(conditions(o)).To(ContainElement(HaveField("Type", name)), title(o))
	}
	Expect(at(o, "status", "observedGeneration")).To(BeEquivalentTo(o.GetGeneration()), title(o))
	for _, c := range conditions(o) {
		Expect(c.Reason).NotTo(BeEmpty(), "%s of %s", c.Type, title(o))
		Expect(c.LastTransitionTime.IsZero()).To(BeFalse(), "%s of %s", c.Type, title(o))
		if c.ObservedGeneration != 0 {
			Expect(c.ObservedGeneration).To(BeNumerically("<=", o.GetGeneration()), "%s of %s", c.Type, title(o))
		}
	}
}

func (s *suite) controlPlaneRules(full func() *fixture) {
	s.rule("P5", "endpoint of the Cluster", must, func(ctx SpecContext) {
		endpoint := s.cluster(ctx, full()).Spec.ControlPlaneEndpoint
		Expect(endpoint.IsValid()).To(BeTrue(), "valid, from any provider")
		if schemaOf(s.crd(ctx, s.ControlPlane.Kind), "spec", "controlPlaneEndpoint") == nil {
			s.skip("the infrastructure provider sets the endpoint: P6")
		}
		Expect(at(s.controlPlane(ctx, full()), "spec", "controlPlaneEndpoint")).To(And(HaveKeyWithValue("host", endpoint.Host),
			HaveKeyWithValue("port", BeEquivalentTo(endpoint.Port))))
	})
	s.rule("P8", "counters", must, func(ctx SpecContext) {
		Eventually(func(g Gomega) { // a provider may count a few seconds later
			controlPlane := s.controlPlane(ctx, full())
			replicas := at(controlPlane, "spec", "replicas")
			for _, counter := range []string{"replicas", "readyReplicas", "availableReplicas", "upToDateReplicas"} {
				g.Expect(at(controlPlane, "status", counter)).To(Equal(replicas), counter)
			}
			mirrored := s.cluster(ctx, full()).Status.ControlPlane
			g.Expect(mirrored.ReadyReplicas).To(HaveValue(BeEquivalentTo(replicas)))
			g.Expect(mirrored.UpToDateReplicas).To(HaveValue(BeEquivalentTo(replicas)))
		}).Should(Succeed())
		first := full().seen.first(s.ControlPlane.Kind, func(e entry) bool { return at(e.object, "status", "replicas") != nil })
		Expect(at(first.object, "status", "readyReplicas")).To(BeEquivalentTo(0), "zero is written as well")
	})
	s.rule("P9", "scale", must, func(ctx SpecContext) { s.expectScale(ctx, full()) })
	s.rule("P10", "spec.version", must, func(ctx SpecContext) {
		controlPlane := s.controlPlane(ctx, full())
		// Without spec.version another field determines the version.
		version := cmp.Or(text(controlPlane, "spec", "version"), text(controlPlane, "status", "version"))
		_, err := semver.ParseTolerant(version)
		Expect(err).NotTo(HaveOccurred())
		machines, _ := s.machines(ctx, full())
		for _, m := range machines {
			Expect(m.Spec.Version).To(Equal("v"+strings.TrimPrefix(version, "v")), m.Name)
		}
		Expect(schemaOf(s.crd(ctx, s.ControlPlane.Kind), "spec").Properties["version"].MinLength).To(HaveValue(BeEquivalentTo(1)))
		for _, set := range []string{"v" + strings.TrimPrefix(version, "v"), strings.TrimPrefix(version, "v")} {
			versioned := controlPlane.DeepCopy()
			Expect(unstructured.SetNestedField(versioned.Object, set, "spec", "version")).To(Succeed())
			Expect(s.client.Update(ctx, versioned, client.DryRunAll)).To(Succeed(), "version %s", set)
		}
	})
	s.rule("P11", "status.version and status.versions", must, func(ctx SpecContext) { s.expectVersions(ctx, full()) })
	s.rule("P12", "labels of the Machines", must, func(ctx SpecContext) {
		controlPlane := s.controlPlane(ctx, full())
		machines, _ := s.machines(ctx, full())
		Expect(machines).To(HaveLen(int(at(controlPlane, "spec", "replicas").(int64))))
		for _, m := range machines {
			Expect(m.Labels).To(And(HaveKeyWithValue(clusterv1.ClusterNameLabel, full().Key().Name),
				HaveKeyWithValue(clusterv1.MachineControlPlaneNameLabel, controlPlane.GetName())), m.Name)
			Expect(metav1.IsControlledBy(&m, controlPlane)).To(BeTrue(), m.Name)
		}
	})
	s.rule("P16", "externalManagedControlPlane", should, func(ctx SpecContext) {
		machines, _ := s.machines(ctx, full())
		Expect(machines).To(HaveEach(HaveField("Status.NodeRef.Name", Not(BeEmpty()))))
		expectNodesManaged(s.controlPlane(ctx, full()))
	})
	s.rule("P18", "initialized", must, func(ctx SpecContext) {
		reported := full().seen.first(s.ControlPlane.Kind, initialized)
		Expect(reported).NotTo(BeNil())
		for _, e := range full().seen.of(s.ControlPlane.Kind) {
			Expect(e.version < reported.version || initialized(e)).To(BeTrue(), "the field stays true")
		}
		secret := full().seen.first(secretKind, func(e entry) bool { return e.GetName() == full().Key().Name+"-kubeconfig" })
		Expect(secret.version).To(BeNumerically("<", reported.version), "the kubeconfig is created first")
		kubeconfig, err := base64.StdEncoding.DecodeString(text(secret.object, "data", "value"))
		Expect(err).NotTo(HaveOccurred())
		expectAccess(ctx, kubeconfig)
		s.addNote("without an answer of the API server: C23")
	})
	s.rule("P20", "conditions", should, func(ctx SpecContext) {
		expectConditions(s.controlPlane(ctx, full()), clusterv1.AvailableCondition, clusterv1.RollingOutCondition, clusterv1.ScalingUpCondition,
			clusterv1.ScalingDownCondition, clusterv1.MachinesReadyCondition, clusterv1.MachinesUpToDateCondition, clusterv1.RemediatingCondition,
			clusterv1.DeletingCondition, clusterv1.PausedCondition)
		Eventually(func(g Gomega) {
			cluster := s.cluster(ctx, full())
			g.Expect(find(cluster.Status.Conditions, clusterv1.ClusterControlPlaneAvailableCondition).Status).To(Equal(metav1.ConditionTrue))
			g.Expect(find(cluster.Status.Conditions, clusterv1.ClusterControlPlaneMachinesUpToDateCondition).Status).To(Equal(metav1.ConditionTrue))
		}).Should(Succeed())
	})
	s.rule("P30", "minReadySeconds and UpToDate", should, func(ctx SpecContext) {
		machines, _ := s.machines(ctx, full())
		for _, m := range machines {
			Expect(m.Spec.MinReadySeconds).NotTo(BeNil(), m.Name)
			Expect(find(m.Status.Conditions, clusterv1.MachineUpToDateCondition).Status).To(Equal(metav1.ConditionTrue), m.Name)
		}
	})
	s.rule("P32", "names", info, func(ctx SpecContext) {
		machines, _ := s.machines(ctx, full())
		for _, m := range machines {
			Expect(m.Spec.InfrastructureRef.Name).To(Equal(m.Name))
			Expect(m.Spec.Bootstrap.ConfigRef.Name).To(Equal(m.Name))
		}
	})
	s.rule("P33", "cloned-from annotations", info, func(ctx SpecContext) {
		machines, _ := s.machines(ctx, full())
		for _, m := range machines {
			expectCloned(s.resolve(ctx, m.Spec.InfrastructureRef, m.Namespace))
		}
	})
}

func initialized(controlPlane entry) bool {
	return at(controlPlane.object, "status", "initialization", "controlPlaneInitialized") == true
}

// expectUninitialized expects that the control plane of a cluster never reported that it is initialized: its API
// server never answered, although its kubeconfig exists.
func (s *suite) expectUninitialized(f *fixture) {
	GinkgoHelper()
	Eventually(func() *entry {
		return f.seen.first(secretKind, func(e entry) bool { return e.GetName() == f.Key().Name+"-kubeconfig" })
	}).ShouldNot(BeNil(), "the kubeconfig of %s", f.Key())
	Consistently(func() *entry { return f.seen.first(s.ControlPlane.Kind, initialized) }).Should(BeNil(), "%s is initialized", f.Key())
}

// expectNodesManaged expects that a control plane does not claim that its Machines have no Nodes. With that
// claim the Nodes of deleted Machines would be left.
func expectNodesManaged(controlPlane *object) {
	GinkgoHelper()
	Expect(at(controlPlane, "status", "externalManagedControlPlane")).NotTo(BeIdenticalTo(true), title(controlPlane))
}

func (s *suite) expectScale(ctx context.Context, f *fixture) {
	GinkgoHelper()
	controlPlane := s.controlPlane(ctx, f)
	scale := &object{}
	scale.SetGroupVersionKind(autoscalingv1.SchemeGroupVersion.WithKind("Scale"))
	Expect(s.client.SubResource("scale").Get(ctx, controlPlane, scale)).To(Succeed())
	Expect(at(scale, "spec", "replicas")).To(Equal(at(controlPlane, "spec", "replicas")))
	Expect(at(scale, "status", "replicas")).To(Equal(at(scale, "spec", "replicas")))
	selector, err := labels.Parse(text(scale, "status", "selector"))
	Expect(err).NotTo(HaveOccurred())
	Expect(selector.Empty()).To(BeFalse())
	controlPlaneMachines, workers := s.machines(ctx, f)
	for _, m := range controlPlaneMachines {
		Expect(selector.Matches(labels.Set(m.Labels))).To(BeTrue(), m.Name)
	}
	others, _ := s.machines(ctx, s.fixtures.small)
	Expect(others).NotTo(BeEmpty())
	for _, m := range slices.Concat(workers, others) {
		Expect(selector.Matches(labels.Set(m.Labels))).To(BeFalse(), m.Name)
	}
	other := at(scale, "spec", "replicas").(int64) + 2
	Expect(unstructured.SetNestedField(scale.Object, other, "spec", "replicas")).To(Succeed())
	Expect(s.client.SubResource("scale").Update(ctx, controlPlane, client.WithSubResourceBody(scale), client.DryRunAll)).To(Succeed())
	Expect(at(scale, "spec", "replicas")).To(Equal(other), "the object that the API server would write")
}

func (s *suite) expectVersions(ctx context.Context, f *fixture) {
	GinkgoHelper()
	controlPlane := s.controlPlane(ctx, f)
	Expect(schemaOf(s.crd(ctx, s.ControlPlane.Kind), "status", "versions")).To(And(HaveField("XListMapKeys", ConsistOf("version")),
		HaveField("MinItems", HaveValue(BeEquivalentTo(1))), HaveField("MaxItems", HaveValue(BeEquivalentTo(100)))))
	Expect(text(controlPlane, "status", "version")).To(Equal(expectVersionsOf(Default, controlPlane)[0]), "the lowest")
	s.addNote("several at once, while the cluster is upgraded: P39 and I13")
	if text(controlPlane, "spec", "version") == "" {
		s.addNote("the sample has no spec.version, for which MachineSets would wait")
		return
	}
	early := f.seen.first(s.ControlPlane.Kind, func(e entry) bool { return text(e.object, "status", "version") != "" })
	initialized := f.seen.first(s.ControlPlane.Kind, func(e entry) bool {
		return at(e.object, "status", "initialization", "controlPlaneInitialized") == true
	})
	Expect(early.version).To(BeNumerically("<", initialized.version),
		"reported before the cluster is installed, because workers wait for the version")
}

// expectVersionsOf expects a control plane to list the versions of its Machines, lowest first, with the number
// of Machines of each. It returns the versions.
func expectVersionsOf(g Gomega, controlPlane *object) []string {
	GinkgoHelper()
	versions, _ := at(controlPlane, "status", "versions").([]any)
	g.Expect(versions).NotTo(BeEmpty())
	var names []string
	var total int64
	for _, v := range versions {
		version := v.(map[string]any)
		name := version["version"].(string)
		_, err := semver.Parse(strings.TrimPrefix(name, "v"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(name).To(HavePrefix("v"))
		replicas, _ := version["replicas"].(int64)
		names, total = append(names, name), total+replicas
	}
	g.Expect(slices.IsSortedFunc(versions, olderFirst)).To(BeTrue(), "%v", versions)
	g.Expect(total).To(Equal(at(controlPlane, "status", "replicas")), "the Machines of %v", versions)
	return names
}

// expectVersionsReported checks the entries of a control plane that was upgraded in place. It listed the former
// version, then both if the versions of its Machines count, then the new one. Each time it reported the lowest as its
// own. The upgrade of the cluster may last longer than that of its Machines: then no Machine has the former version.
func expectVersionsReported(g Gomega, seen []entry, from, to string) {
	GinkgoHelper()
	var reported []string
	for _, e := range seen {
		if text(e.object, "spec", "version") != to {
			continue
		}
		now := fmt.Sprint(text(e.object, "status", "version"), " of ", expectVersionsOf(g, e.object))
		if len(reported) == 0 || reported[len(reported)-1] != now {
			reported = append(reported, now)
		}
	}
	entryOf := func(lowest string, versions ...string) string { return fmt.Sprint(lowest, " of ", versions) }
	g.Expect(reported).To(Or(
		Equal([]string{entryOf(from, from), entryOf(from, from, to), entryOf(to, to)}), Equal([]string{entryOf(from, from), entryOf(to, to)})),
		"the versions reported during the upgrade to %s", to)
}

// olderFirst compares two entries of status.versions.
func olderFirst(a, b any) int {
	return semver.MustParse(strings.TrimPrefix(a.(map[string]any)["version"].(string),
		"v")).Compare(semver.MustParse(strings.TrimPrefix(b.(map[string]any)["version"].(string), "v")))
}

func (s *suite) kubeconfigRules(full func() *fixture) {
	secretOf := func(ctx context.Context) *corev1.Secret {
		secret := &corev1.Secret{}
		key := full().Key()
		key.Name += "-kubeconfig"
		Expect(s.client.Get(ctx, key, secret)).To(Succeed())
		return secret
	}
	s.rule("P23", "kubeconfig secret", must, func(ctx SpecContext) {
		secret := secretOf(ctx)
		Expect(secret.Type).To(Equal(clusterv1.ClusterSecretType))
		Expect(secret.Labels).To(HaveKeyWithValue(clusterv1.ClusterNameLabel, full().Key().Name))
		expectAccess(ctx, secret.Data["value"])
	})
	renewedBy := func(ctx context.Context, what string, renew func(context.Context) error) {
		GinkgoHelper()
		before := secretOf(ctx)
		s.expectDone(renew(ctx), what)
		Eventually(func() []byte { return secretOf(ctx).Data["value"] }).ShouldNot(Equal(before.Data["value"]), what)
		expectShortLife(secretOf(ctx).Data["value"])
		expectAccess(ctx, secretOf(ctx).Data["value"])
	}
	s.rule("P24", "kubeconfig rotation", must, func(ctx SpecContext) {
		expectShortLife(secretOf(ctx).Data["value"])
		renewedBy(ctx, "renewal is due", full().AgeKubeconfig)
		renewedBy(ctx, "the installing service has another kubeconfig", full().RotateKubeconfig)
	}, NodeTimeout(3*soon))
	s.rule("P25", "kubeconfig is not shared", must, func(ctx SpecContext) {
		users, err := full().UsersKubeconfig(ctx)
		s.expectDone(err)
		expectAccess(ctx, users)
		expectDifferentCredentials(secretOf(ctx).Data["value"], users)
	}, NodeTimeout(soon))
	s.rule("P26", "owner of the kubeconfig, and the user's own", info, func(ctx SpecContext) {
		secret := secretOf(ctx)
		controlPlane := s.controlPlane(ctx, full())
		Expect(metav1.IsControlledBy(secret, controlPlane)).To(BeTrue())
		owners := secret.OwnerReferences
		disowned := secret.DeepCopy()
		disowned.OwnerReferences, disowned.Annotations = nil, nil // a provider may recognize its own Secret by either
		disowned.Data["value"] = append(disowned.Data["value"], "# mine\n"...)
		Expect(s.client.Update(ctx, disowned)).To(Succeed())
		rotated := full().RotateKubeconfig(ctx)
		Consistently(func() []byte { return secretOf(ctx).Data["value"] }).Should(Equal(disowned.Data["value"]), "the user's own is not changed")
		disowned.OwnerReferences = owners
		Expect(s.client.Update(ctx, disowned)).To(Succeed())
		s.expectDone(rotated)
		Eventually(func() []byte { return secretOf(ctx).Data["value"] }).ShouldNot(Equal(disowned.Data["value"]), "ours is kept up to date")
	})
}

// expectAccess checks that a kubeconfig gives access to its cluster.
func expectAccess(ctx context.Context, kubeconfig []byte) {
	GinkgoHelper()
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	workload, err := client.New(config, client.Options{})
	Expect(err).NotTo(HaveOccurred())
	Expect(workload.List(ctx, &corev1.NodeList{})).To(Succeed())
}

// expectDifferentCredentials expects two kubeconfigs to have different credentials, so that those of users can be revoked
// without those of Cluster API.
func expectDifferentCredentials(kubeconfig, another []byte) {
	GinkgoHelper()
	one, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	other, err := clientcmd.RESTConfigFromKubeConfig(another)
	Expect(err).NotTo(HaveOccurred())
	Expect(one.BearerToken + string(one.CertData)).NotTo(Equal(other.BearerToken + string(other.CertData)))
}

// expectShortLife checks that the credentials in a kubeconfig expire soon enough.
func expectShortLife(kubeconfig []byte) {
	GinkgoHelper()
	expiry, err := credentialsExpiry(kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	Expect(expiry).To(BeTemporally("<", time.Now().AddDate(0, credentialsMonths, 0)), "the end of the credentials in the kubeconfig")
}

// OwnerGraph lists which kinds of objects are owned by which, one per line: "Kind <- Owner (controller)".
func OwnerGraph(objects []object) string {
	lines := map[string]bool{}
	for _, o := range objects {
		owners := o.GetOwnerReferences()
		if len(owners) == 0 {
			lines[o.GetKind()+" <- nothing"] = true
		}
		for _, owner := range owners {
			line := fmt.Sprintf("%s <- %s", o.GetKind(), owner.Kind)
			if owner.Controller != nil && *owner.Controller {
				line += " (controller)"
			}
			lines[line] = true
		}
	}
	sorted := make([]string, 0, len(lines))
	for line := range lines {
		sorted = append(sorted, line)
	}
	slices.Sort(sorted)
	return strings.Join(sorted, "\n") + "\n"
}

// unowned returns the objects of Cluster API in a cluster without a chain of owners to the Cluster.
func unowned(objects []object) []string {
	byUID := map[types.UID]object{}
	for _, o := range objects {
		byUID[o.GetUID()] = o
	}
	var owned func(o object) bool
	owned = func(o object) bool {
		return o.GetKind() == "Cluster" || slices.ContainsFunc(o.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
			owner, found := byUID[ref.UID]
			return found && owned(owner)
		})
	}
	var names []string
	for _, o := range objects {
		group := o.GroupVersionKind().Group
		ours := group == capiGroup || strings.HasSuffix(group, "."+capiGroup) || text(&o, "type") == string(clusterv1.ClusterSecretType)
		if ours && !owned(o) {
			names = append(names, title(&o))
		}
	}
	return names
}
