{{- define "regent.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "regent.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "regent.labels" -}}
{{ include "regent.selector" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- define "regent.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag }}
{{- end -}}

{{- define "regent.scaling" -}}
{{- if .Values.autoscaling.behavior -}}
{{- toYaml .Values.autoscaling.behavior -}}
{{- else -}}
{{- if .Values.autoscaling.queueWait.enabled -}}
# A wait is not in proportion to the load: it is nothing for long, and then explodes. What it asks for is bounded.
scaleUp:
  stabilizationWindowSeconds: 30
  policies:
    - { type: Percent, value: 50, periodSeconds: 60 }
    - { type: Pods, value: 2, periodSeconds: 60 }
  selectPolicy: Max
{{ end -}}
scaleDown:
  stabilizationWindowSeconds: 300
  policies:
    - { type: Percent, value: 25, periodSeconds: 60 }
{{- end -}}
{{- end -}}

{{- define "regent.caddyfile" -}}
{
	# The admin API is for this pod alone.
	admin localhost:2019
	# The file system of the pod is read-only, and the ConfigMap is the truth.
	persist_config off
	grace_period {{ .Values.shutdown.gracePeriodSeconds }}s
	{{- with .Values.server.globalOptions }}
	{{ . | trim | replace "\n" "\n\t" }}
	{{- end }}

	servers {
		{{- with .Values.server.trustedProxies }}
		trusted_proxies static {{ join " " . }}
		{{- end }}
	}

	regent {
		max_threads {{ if .Values.server.maxThreads }}{{ .Values.server.maxThreads }}{{ else }}auto{{ end }}
		spool {
			file {{ .Values.server.spoolFile }}
		}
		{{- with .Values.server.healthUri }}
		health_uri {{ . }}
		{{- end }}
		{{- with .Values.server.phpOptions }}
		{{ . | trim | replace "\n" "\n\t\t" }}
		{{- end }}
	}
}

http://:8080 {
	root * {{ .Values.server.root }}
	encode zstd br gzip
	{{- with .Values.server.siteDirectives }}
	{{ . | trim | replace "\n" "\n\t" }}
	{{- end }}
	php_server {
		trust_client_address
	}
}

# What the kubelet and Prometheus ask: of the admin API, which can also stop the server, no more than this.
http://:9180 {
	@probes {
		method GET HEAD
		path /regent/ready /regent/live
	}
	handle @probes {
		reverse_proxy 127.0.0.1:2019 {
			header_up Host {upstream_hostport}
		}
	}
	handle /metrics {
		metrics
	}
	handle {
		respond 404
	}
}
{{- end -}}
