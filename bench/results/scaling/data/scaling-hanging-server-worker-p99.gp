set encoding utf8
set terminal pngcairo noenhanced size 1200,720
set output 'scaling-hanging-server-worker-p99.png'
set title 'hanging server: Regent worker: p99 of each tenth of a second'
set xlabel 'time (s)'
set ylabel 'p99 latency (ms)'
set xrange [0:*]
set logscale y
set grid
set samples 200
set key above
plot 'scaling-hanging-server-worker-p99-pool-default.dat' using 1:2 with lines linecolor rgb '#332288' title 'default', \
     'scaling-hanging-server-worker-p99-pool-scaling.dat' using 1:2 with lines linecolor rgb '#6e6e14' title 'scaling', \
     'scaling-hanging-server-worker-p99-pool-ideal.dat' using 1:2 with lines linecolor rgb '#882255' title 'ideal'
