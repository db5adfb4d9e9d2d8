-- Prints the result as one line of JSON; durations and latencies in microseconds.
function done(summary, latency, requests)
   local errors = summary.errors
   io.write(string.format(
      'regent-bench {"duration":%d,"requests":%d,"bytes":%d,' ..
      '"latency":{"mean":%d,"p50":%d,"p90":%d,"p99":%d,"p999":%d,"max":%d},' ..
      '"errors":{"connect":%d,"read":%d,"write":%d,"status":%d,"timeout":%d}}\n',
      summary.duration, summary.requests, summary.bytes,
      latency.mean, latency:percentile(50), latency:percentile(90), latency:percentile(99), latency:percentile(99.9),
      latency.max,
      errors.connect, errors.read, errors.write, errors.status, errors.timeout))
end
