package redact

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

// hidden is the credential in each text.
const hidden = "Hunter2TopValue"

// texts contain the credential, by situation.
var texts = map[string]string{
	"user and password in a URL":         "connect to redfish+https://root:" + hidden + "@bmc1/redfish/v1/Systems/1 failed",
	"API key in a URL":                   "GET https://svc/v2/events?cluster_id=1&api_key=" + hidden,
	"API key without a host":             `"GET /v2/events?api_key=` + hidden + `" 200`,
	"token in the path of an image":      "https://img/byapikey/" + hidden + "/4.19/full.iso",
	"bearer token":                       "Authorization: Bearer " + hidden,
	"JSON":                               `{"user":"x","password":"` + hidden + `"}`,
	"JSON in a string":                   `"body":"{\"password\":\"` + hidden + `\"}"`,
	"password with a quote":              `{"password":"a\"` + hidden + `"}`,
	"cut off JSON":                       `{"password":"` + hidden,
	"pull secret":                        `{"auths":{"quay.io":{"auth":"` + hidden + `","email":"a@b"}}}`,
	"YAML":                               "users:\n- user:\n    token: two " + hidden + "\n",
	"kubeconfig":                         "    client-key-data: " + hidden,
	"structured log":                     `msg="login" bmcPassword="` + hidden + `" host=a`,
	"environment":                        "IRONIC_HTTP_PASSWORD=" + hidden,
	"single quotes":                      `{'password': '` + hidden + `'}`,
	"ipmitool":                           "ipmitool -I lanplus -H bmc -U root -P " + hidden + " power status",
	"ipmitool as a list":                 `['ipmitool', '-P', '` + hidden + `']`,
	"flag":                               "run --registry-password " + hidden,
	"private key":                        "-----BEGIN OPENSSH PRIVATE KEY-----\n" + hidden + "\n-----END OPENSSH PRIVATE KEY-----",
	"private key without its end":        "-----BEGIN PRIVATE KEY-----\n" + hidden,
	"private key with escapes":           `-----BEGIN RSA PRIVATE KEY-----\n` + hidden + `\n-----END RSA PRIVATE KEY-----`,
	"base64 of a private key":            "LS0tLS1CRUdJTiBQ" + hidden + "==",
	"base64 of a pull secret":            "eyJhdXRocyI6" + hidden,
	"file of an ignition":                `"source":"data:text/plain;charset=utf-8;base64,` + hidden + `"`,
	"token of OpenShift":                 "sha256~" + hidden,
	"hash of a password":                 "core:$6$salt$" + hidden + "xyz:",
	"user and password without a scheme": "curl admin:" + hidden + "@bmc1",
	"header":                             "X-Secret-Key: " + hidden,
	// Values of unquoted names, with what precedes and what ends them.
	"special characters":                      "IRONIC_PASSWORD=ab&" + hidden + ";" + hidden,
	"brace that does not close":               "password: {" + hidden,
	"parenthesis":                             "bmc_password=(" + hidden,
	"YAML with a timestamp":                   "2026-11-29T12:00:00.1Z     password: two " + hidden,
	"YAML in a journal":                       "Nov 29 12:00:00 m0 kubelet.sh[12]:   password: two " + hidden,
	"YAML in a string":                        `msg="a: b\n  password: two ` + hidden + `\nuser: x"`,
	"block of YAML":                           "password: |-\n  two\n\n  " + hidden + "\nuser: x",
	"block of YAML with timestamps":           "2026-11-29T12:00:00.1Z   token: >\n2026-11-29T12:00:00.2Z     " + hidden + "\n",
	"block of YAML in a string":               `"content":"a: b\npassword: |\n  one\n  ` + hidden + `\nuser: x"`,
	"doubled quote":                           "password: 'it''s " + hidden + "'",
	"escaped quote in a string":               `"body":"{\"password\":\"a\\\"` + hidden + `\"}"`,
	"quotes of a shell":                       `password='a'"'"'` + hidden + `'`,
	"bytes of Go":                             "map[password:[104 117 " + hidden + "]]",
	"header of Go":                            "X-Auth-Token:[" + hidden + "]",
	"header in JSON":                          `"X-Auth-Token":["` + hidden + `"]`,
	"object in JSON":                          `"password":{"value":"` + hidden + `"}`,
	"object in JSON with lines":               "\"password\": {\n  \"value\": \"" + hidden + "\"\n}",
	"XML":                                     "<n1:Password>" + hidden + "</n1:Password>",
	"bytes of Python":                         "{'password': b'" + hidden + "'}",
	"environment in JSON":                     `{"name":"BMC_PASSWORD","value":"` + hidden + `"}`,
	"environment in JSON, value first":        `{"value":"` + hidden + `","name":"BMC_PASSWORD"}`,
	"environment of Go":                       "{Name:BMC_PASSWORD Value:two " + hidden + " ValueFrom:nil}",
	"environment in YAML":                     "- name: BMC_PASSWORD\n  value: " + hidden,
	"patch":                                   `[{"op":"add","path":"/spec/bmc/adminPassword","value":"` + hidden + `"}]`,
	"login of podman":                         "podman login -u admin -p " + hidden + " registry.lab",
	"list of YAML":                            "passwords:\n- " + hidden + "\n- a: " + hidden + "\nuser: x",
	"line after its name":                     "password:\n  " + hidden + "\nuser: x",
	"line of JSON after its name":             "\"password\":\n  \"" + hidden + "\"\n",
	"commands in YAML":                        "preBootstrapCommands:\n- curl https://x\n- echo " + hidden + "\nuser: x",
	"name of two words":                       "API Key: " + hidden,
	"password from a pipe":                    "echo " + hidden + " | podman login --password-stdin quay.io",
	"password of passwd":                      "echo '" + hidden + "' | passwd --stdin core",
	"password from a here string":             "podman login --password-stdin <<< " + hidden,
	"racadm":                                  "racadm -r x -u root -p " + hidden + " getsysinfo",
	"user of curl without a space":            "curl -uroot:" + hidden + " https://bmc1",
	"digest":                                  `Authorization: Digest username="a", response="` + hidden + `"`,
	"bytes in Go":                             `&v1.Secret{Data:map[string][]byte{"key":[]byte("` + hidden + `")}}`,
	"bytes in Go by name":                     `{"password":[]uint8{0x48, ` + hidden + `}}`,
	"sshpass":                                 "sshpass -p " + hidden + " ssh core@m0",
	"literal of kubectl":                      "kubectl create secret generic x --from-literal=password=" + hidden,
	"string of Python with an escaped quote":  `{'password': u'it\'s ` + hidden + `'}`,
	"two words in a message":                  `{"msg":"password: two ` + hidden + `","host":"m0"}`,
	"block of YAML in escaped JSON":           `"x":"password: |\n  ` + hidden + `\n"`,
	"user of curl":                            "curl -u admin:" + hidden + " https://bmc1",
	"chpasswd":                                "echo core:" + hidden + " | chpasswd",
	"here string of chpasswd":                 `chpasswd <<< "core:` + hidden + `"`,
	"ipmitool with quotes":                    "ipmitool -U root -P 'p@ss " + hidden + "' power status",
	"flag with quotes":                        `skopeo --password "two ` + hidden + `" copy`,
	"flag after a flag":                       "run --insecure --registry-password " + hidden,
	"flag in escaped JSON":                    `"{\"args\":[\"--password\",\"` + hidden + `\"]}"`,
	"flag on a line of its own":               "args:\n- --password\n- " + hidden,
	"flag before a continued line":            "skopeo --password \\\n  " + hidden + " \\\n  copy",
	"end of a private key":                    "MIIEow" + hidden + "\nabc" + hidden + "==\n-----END RSA PRIVATE KEY-----\n",
	"end of a private key with timestamps":    "2026-11-29T12:00:00.1Z MIIE" + hidden + "\n2026-11-29T12:00:00.1Z -----END PRIVATE KEY-----\n",
	"end of a private key with escapes":       `MIIE` + hidden + `\nabc` + hidden + `\n-----END PRIVATE KEY-----\n`,
	"key of MACsec":                           "mka-cak: " + hidden,
	"name of a key of MACsec":                 "mka-ckn=" + hidden,
	"pwd":                                     "pwd=" + hidden,
	"name that ends in pass":                  "DB_PASS=" + hidden,
	"name that ends in Pass":                  `"bmcPass":"` + hidden + `"`,
	"preshared key":                           "preshared-key: " + hidden,
	"cookie":                                  "Cookie: a=b; session=" + hidden,
	"cookie of an answer":                     `< Set-Cookie: a=b; session=` + hidden + `; Path=/`,
	"hash of yescrypt":                        "core:$y$j9T$salt$" + hidden,
	"hash of gost-yescrypt":                   "core:$gy$j9T$salt$" + hidden,
	"hash of htpasswd":                        "core:$apr1$salt$" + hidden,
	"hash of argon2":                          "core:$argon2id$v=19$m=65536,t=3,p=4$c2FsdA$" + hidden,
	"root of iSCSI":                           "netroot=iscsi:root:" + hidden + ":ruser:R" + hidden + "@10.0.0.1",
	"base64 of gzip":                          "applied: H4sIAAAAAAAA/" + hidden,
	"secret of two words":                     "secret: two " + hidden,
	"sentence":                                "login failed: the password is " + hidden,
	"sentence about a user":                   "Password for user root on host1 is '" + hidden + "', retrying",
	"sentence about a change":                 "the password of root was changed to " + hidden,
	"sentence with a token":                   "cannot join with token " + hidden,
	"sentence in JSON":                        `{"msg":"password is ` + hidden + `","host":"m0"}`,
	"htpasswd":                                "htpasswd -b /tmp/users admin " + hidden,
	"htpasswd with more options":              "run htpasswd -c -B -bC 10 users admin " + hidden + " && ls",
	"htpasswd without a file":                 "htpasswd -nb admin " + hidden + " | tee x",
	"htpasswd as a list":                      `["htpasswd", "-b", "users", "admin", "` + hidden + `"]`,
	"quotes of JSON in their long form":       `"body":"{\u0022password\u0022:\u0022` + hidden + `\u0022}"`,
	"quotes in their long form, twice":        `"body":"{\\u0022password\\u0022: \\u0022` + hidden + `\\u0022}"`,
	"equals sign in its long form":            `"cmd":"bmcPassword\u003D` + hidden + `"`,
	"private key without start and end":       pemLine("MIIEow") + "\n" + pemLine("AAAA") + "\n" + hidden + "AB==\n",
	"rests of a private key":                  "AAAA" + hidden + "1\n" + pemLine("MIIEow") + "\n" + hidden + "1",
	"private key in a log without its ends":   "2026-11-29T12:00:00.1Z " + pemLine("a") + "\n2026-11-29T12:00:00.2Z   " + pemLine("b") + "\n",
	"private key of OpenSSH without its ends": pemLine("b3BlbnNzaA") + "AAAAAA\n" + pemLine("a") + "AAAAAA\n",
	"escaped private key without its ends":    `x\n` + pemLine("MIIEow") + `\n` + pemLine("a") + `\nAB` + hidden + `==\n`,
	"private key behind a certificate":        "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----\n" + pemLine("MIIEow") + "\n",
}

// pemLine returns a line of PEM with the credential.
func pemLine(start string) string {
	return start + hidden + strings.Repeat("Q", 64-len(start)-len(hidden))
}

func TestTextWithoutCredentials(t *testing.T) {
	for situation, text := range texts {
		t.Run(situation, func(t *testing.T) {
			g, r := NewWithT(t), New()
			got := r.Text(text)
			g.Expect(strings.ToLower(got)).NotTo(ContainSubstring(strings.ToLower(hidden)))
			g.Expect(r.Text(got)).To(Equal(got), "redacting again changes nothing")
		})
	}
}

func TestUsefulTextIsKept(t *testing.T) {
	for _, text := range []string{
		"Secret lab/pull-secret does not exist. Create it.",
		"cannot read secret: not found",
		"dataSecretName: ha-m0",
		"image quay.io/ocp/release:4.19.3@sha256:0123456789abcdef is pulled",
		"2026-11-29T12:00:00Z host m0: reached installation stage Writing image to disk: 45%",
		"BareMetalHost lab/rack1-u7 has no MAC address. Set spec.bootMACAddress or wait for inspection.",
		"authentication failed for host m0",
		`"Reconciled" Secret="lab/ha-kubeconfig" Cluster="lab/ha"`,
		`{"msg":"Reconciled","Secret":{"name":"ha-kubeconfig","namespace":"lab"},"reconcileID":"1"}`,
		"2026-11-29T12:00:00.1Z DataSecretAvailable: Waiting for the bootstrap provider",
		`cannot read the published kubeconfig: secrets "x" not found`,
		`msg="cannot get secret: Secret \"ha\" not found" controller="x"`,
		"userData:\n  name: ha\n  namespace: lab",
		"podman login --password-stdin quay.io",
		`level=info msg="Ignition: fetched base config from platform" kept=1`,
		"node01.openshiftcluster is not reachable",
		"E1129 12:00:00.1       1 secret_controller.go:88] Failed to list: timeout",
		"mkdir -p /var/lib/kubelet; journalctl -u kubelet -o cat",
		"-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
		"-----BEGIN CERTIFICATE-----\n" + pemLine("MIIE") + "\nAB==\n-----END CERTIFICATE-----\n",
		`"-----BEGIN PUBLIC KEY-----\n` + pemLine("MIIE") + `\nAB==\n-----END PUBLIC KEY-----\n"`,
		strings.Repeat("0a1b2c3d", 8) + "\n" + strings.Repeat("0a1b2c3d", 8) + "\ndone\n",
		"the password is required, and the token was not found",
		"the token for system:bootstrap is expired. Secret is missing",
		"the password of root has been changed; authentication with password authentication is disabled",
		"htpasswd -c users admin",
	} {
		NewWithT(t).Expect(New().Text(text)).To(Equal(text))
	}
}

func TestObjectWithoutCredentials(t *testing.T) {
	g, r := NewWithT(t), New()
	object := map[string]any{}
	g.Expect(yaml.Unmarshal([]byte(strings.ReplaceAll(`
metadata:
  name: rack1
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: HIDDEN
    agent-install.openshift.io/install-config-overrides: '{"fencing":{"credentials":[{"username":"HIDDEN","password":"HIDDEN"}]},"a":1}'
    agent-install.openshift.io/ignition-config-overrides: HIDDEN
    objectset.rio.cattle.io/applied: HIDDEN
spec:
  bmc: {address: "redfish://root:Learned2TopValue@bmc1/redfish/v1/Systems/1?token=HIDDEN", credentialsName: rack1-bmc}
  userData: {name: m0, namespace: lab}
  pullSecretRef: {name: pull-secret}
  ignitionConfigOverride: HIDDEN
  config:
    interfaces:
    - {name: eth0, 802.1x: {identity: a, private-key-password: HIDDEN}}
    - {name: wifi, wpa: {psk: HIDDEN}}
    - {name: digits, password: 12345678}
  env: [{name: BMC_PASSWORD, value: HIDDEN}, {name: LEVEL, value: debug}]
  document: "a: 1\npassword: HIDDEN\nlist:\n- token: HIDDEN\n"
  list: "- {name: BMC_PASSWORD, value: HIDDEN}\n- {name: B, value: b}\n"
  metaData: {strings: [{key: bmc-password, value: HIDDEN}, {key: rack, value: rack-7}]}
  patches:
  - {op: add, path: /spec/template/spec/adminPassword, value: HIDDEN}
  - {op: add, path: /spec/template/spec/adminPassword/value, value: HIDDEN}
  - {op: add, path: /spec/template/spec/level, value: kept-level}
  variables: [{name: bmcPassword, schema: {openAPIV3Schema: {default: HIDDEN, example: HIDDEN}}}]
  preBootstrapCommands: ["podman login -p HIDDEN", "HIDDEN"]
  postBootstrapCommands: [HIDDEN]
  bootstrapCommandSentinelDir: /var/sentinel
  containers:
  - {command: [manager, --password, "two HIDDEN", --level, debug-level], args: [-u, "admin:HIDDEN", -v, "3"]}
  - {command: [podman, login, -p, HIDDEN, registry.lab]}
  - {command: [htpasswd, -c, -b, users, admin, HIDDEN]}
status:
  variables: [{name: bmcPassword, definitions: [{from: inline, schema: {openAPIV3Schema: {default: HIDDEN}}}]}]
`, "HIDDEN", hidden)), &object)).To(Succeed())
	r.Learn(object)
	r.Object(object)
	got, err := yaml.Marshal(object)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(got)).NotTo(Or(ContainSubstring(hidden), ContainSubstring("Learned"), ContainSubstring("12345678")))
	for _, kept := range []string{
		"address: redfish://bmc1/redfish/v1/Systems/1", "credentialsName: rack1-bmc", "name: m0", "name: pull-secret", "name: eth0",
		"identity: a", "value: debug", "name: B", "value: b", "value: rack-7", "value: kept-level", "bootstrapCommandSentinelDir: /var/sentinel",
		"debug-level", "registry.lab",
	} {
		g.Expect(string(got)).To(ContainSubstring(kept))
	}
	g.Expect(r.Text("the log contains Learned2TopValue alone")).To(Equal("the log contains "+Removed+" alone"), "learned")
}

func TestTextAroundCredentialsIsKept(t *testing.T) {
	for text, want := range map[string]string{
		`{"msg":"password=Hunter2","host":"m0"}`:                          `{"msg":"password=[redacted]","host":"m0"}`,
		"GET /events?api_key=Hunter2&cluster=ha answers 200":              "GET /events?api_key=[redacted]&cluster=ha answers 200",
		`{"password":"Hunter2","host":"m0"}`:                              `{"password":"[redacted]","host":"m0"}`,
		"password: |\n  Hunter2\nuser: x":                                 "password: [redacted]\nuser: x",
		"2026-11-29T12:00:00Z   password: two words\nnext: a":             "2026-11-29T12:00:00Z   password: [redacted]\nnext: a",
		"ipmitool -U root -P 'two words' power status":                    "ipmitool -U root -P '[redacted]' power status",
		"podman login -u admin -p Hunter2 registry.lab":                   "podman login -u admin -p [redacted] registry.lab",
		`{"name":"DB_PASS","value":"a"},{"name":"B","value":"c"}`:         `{"name":"DB_PASS","value":"[redacted]"},{"name":"B","value":"c"}`,
		"<a:Password>Hunter2</a:Password><Id>1</Id>":                      "<a:Password>[redacted]</a:Password><Id>1</Id>",
		"clientSecret: swordfish\n":                                       "clientSecret: [redacted]\n",
		"MIIE\n-----END PRIVATE KEY-----\nnext line":                      "[redacted]\nnext line",
		"token 0a1b2c.0123456789abcdef is valid":                          "token [redacted] is valid",
		"the password is Hunter2, the user root":                          "the password is [redacted] the user root",
		"htpasswd -b users admin Hunter2 && ls":                           "htpasswd -b [redacted] && ls",
		`{"b":"{\u0022token\u0022:\u0022Hunter2\u0022,\u0022a\u0022:1}"}`: `{"b":"{\"token\":\"[redacted]\",\"a\":1}"}`,
		"start\n" + pemLine("A") + "\n" + pemLine("B") + "\nAB==\nend\n":  "start\n[redacted]\nend\n",
	} {
		NewWithT(t).Expect(New().Text(text)).To(Equal(want))
	}
}

// The user and password of a proxy are often words that also are names of fields.
func TestLearnedWordsHideNoNames(t *testing.T) {
	for _, password := range []string{"password", "password=", "openshift", "redacted"} {
		g, r := NewWithT(t), New()
		object := map[string]any{
			"apiVersion": "hive.openshift.io/v1", "kind": "openshift", "proxy": "http://user:" + password + "@proxy:3128", "note": "see " + password,
		}
		r.Learn(object)
		g.Expect(r.Text(`{"password":"Hunter2"}`)).NotTo(ContainSubstring("Hunter2"))
		g.Expect(r.Text("password=Hunter2")).NotTo(ContainSubstring("Hunter2"))
		g.Expect(r.Text(r.Text("password=Hunter2"))).To(Equal(r.Text("password=Hunter2")), "redacting again changes nothing")
		r.Object(object)
		g.Expect(object).To(And(HaveKeyWithValue("apiVersion", "hive.openshift.io/v1"), HaveKeyWithValue("kind", "openshift")))
	}
}

func TestDeepObjectEnds(t *testing.T) {
	g, value := NewWithT(t), any("password="+hidden)
	for range 1000 {
		value = map[string]any{"a": value}
	}
	object := map[string]any{"spec": value}
	New().Object(object)
	got, err := yaml.Marshal(object)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(got)).NotTo(ContainSubstring(hidden))
}
