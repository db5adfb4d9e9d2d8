set encoding utf8
set terminal pngcairo noenhanced size 1200,720
set output 'isolation-hanging.png'
set title 'Median of each tenth of a second, beside 2 % that hang'
set xlabel 'time (s)'
set ylabel 'p50 latency (ms)'
set xrange [0:*]
set logscale y
set grid
set samples 200
set key above
plot 'isolation-hanging-worker.dat' using 1:2 with lines linecolor rgb '#d55e00' title 'Regent worker', \
     'isolation-hanging-classic.dat' using 1:2 with lines linecolor rgb '#0072b2' title 'Regent classic', \
     'isolation-hanging-fpm.dat' using 1:2 with lines linecolor rgb '#00865f' title 'nginx + php-fpm'
