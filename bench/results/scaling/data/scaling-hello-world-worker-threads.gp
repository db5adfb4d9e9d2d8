set encoding utf8
set terminal pngcairo noenhanced size 1200,720
set output 'scaling-hello-world-worker-threads.png'
set title 'hello world: Regent worker: threads over time'
set xlabel 'time (s)'
set ylabel 'threads of the pool'
set xrange [0:*]
set yrange [0:*]
set grid
set samples 200
set key above
plot 'scaling-hello-world-worker-threads-pool-default.dat' using 1:2 with steps linewidth 2 linecolor rgb '#332288' dashtype (10,3,2,3) title 'default', \
     'scaling-hello-world-worker-threads-pool-scaling.dat' using 1:2 with steps linewidth 2 linecolor rgb '#6e6e14' dashtype (10,3,2,3) title 'scaling', \
     'scaling-hello-world-worker-threads-pool-ideal.dat' using 1:2 with steps linewidth 2 linecolor rgb '#882255' dashtype (10,3,2,3,2,3) title 'ideal'
